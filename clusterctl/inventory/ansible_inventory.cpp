// What ansible-inventory answers, as the sources of an inventory.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "inventory/sources.h"

namespace clusterctl::inventory {
namespace {

// Texts that were marked as no templates are texts; what is encrypted stays closed.
Json plain(const Json& value, bool& encrypted) {
  if (value.is_object() && value.size() == 1) {
    if (value.contains("__ansible_unsafe")) return value["__ansible_unsafe"];
    if (value.contains("__ansible_vault")) encrypted = true;
  }
  if (!value.is_structured()) return value;
  Json out = value;
  for (auto it = out.begin(); it != out.end(); ++it) *it = plain(*it, encrypted);
  return out;
}

Json object(const Json& parent, const std::string& key) {
  const auto it = parent.find(key);
  return it != parent.end() && it->is_object() ? *it : Json::object();
}

std::set<std::string> names(const Json& parent, const std::string& key) {
  std::set<std::string> out;
  const auto it = parent.find(key);
  if (it == parent.end() || !it->is_array()) return out;
  for (const Json& item : *it) {
    if (item.is_string()) out.insert(item.get<std::string>());
  }
  return out;
}

}  // namespace

Sources sources_of_ansible(const Json& exported, const Json& listed) {
  Sources out;
  out.groups["all"];
  const auto open = [&](const Json& vars, const std::string& what) {
    bool encrypted = false;
    Json kept = plain(vars, encrypted);
    if (encrypted)
      out.problem("vault", fmt::format("{} holds a value encrypted with ansible-vault", what),
                  "decrypt it first: the controller keeps secrets itself");
    return kept;
  };
  for (const auto& [name, body] : exported.items()) {
    if (name == "_meta" || !body.is_object()) continue;
    for (const std::string& host : names(body, "hosts")) out.hosts[host];
    if (name == "ungrouped") continue;
    Group& group = out.groups[name];
    group.vars = open(object(body, "vars"), "group " + one_line(name));
    group.hosts = names(body, "hosts");
    group.children = names(body, "children");
    group.children.erase("ungrouped");
  }
  for (const auto& [name, group] : std::map(out.groups)) {
    for (const std::string& child : group.children) out.groups[child];
  }
  const Json own = object(object(exported, "_meta"), "hostvars");
  const Json effective = object(object(listed, "_meta"), "hostvars");
  for (auto& [name, host] : out.hosts) {
    host.vars = open(object(own, name), one_line(name));
    bool known = false;
    out.effective[name] = plain(object(effective, name), known);
  }
  return out;
}

}  // namespace clusterctl::inventory
