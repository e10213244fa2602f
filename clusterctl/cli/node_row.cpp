#include "cli/node_row.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

const Json& spec(const Json& node, std::string_view key) {
  return field(field(node, "spec"), key);
}
const Json& status(const Json& node, std::string_view key) {
  return field(field(node, "status"), key);
}

std::string arrow(const std::string& applied, const std::string& wanted) {
  return applied == wanted || applied.empty() ? wanted : applied + "→" + wanted;
}

std::string list(const Json& value) {
  std::vector<std::string> names = texts(value);
  std::sort(names.begin(), names.end());
  return join(names, ",");
}

}  // namespace

std::string shown_group(const Json& node) {
  return arrow(text(field(status(node, "applied"), "host_group")), text(spec(node, "host_group")));
}

std::string shown_capabilities(const Json& node) {
  const std::string applied = list(field(status(node, "applied"), "capabilities"));
  const std::string wanted = list(spec(node, "capabilities"));
  return wanted.empty() ? applied
                        : arrow(applied, wanted);  // none given: the defaults of the group
}

std::string shown_availability(const Json& node) {
  return arrow(text(field(status(node, "applied"), "availability")),
               text(spec(node, "availability")));
}

std::string shown_maintenance(const Json& node) {
  const Json& stay = status(node, "maintenance");
  if (!stay.is_object()) return "";
  const std::string reason = text(stay, "reason"), until = short_time(field(stay, "until"));
  return (reason.empty() ? "" : reason + ", ") + "for " + text(stay, "owner") + ", since " +
         short_time(field(stay, "since")) + (until.empty() ? "" : ", until " + until) + ", then " +
         text(stay, "availability_before");
}

std::string shown_health(const Json& node) {
  std::vector<std::string> words;
  for (const Json& c : status(node, "conditions")) words.push_back(text(c, "type"));
  const Json& services = status(node, "services");
  std::vector<std::string> bad;
  if (services.is_object()) {
    for (const auto& [name, s] : services.items()) {
      if (field(s, "healthy") != true) bad.push_back(name);
    }
  }
  if (!bad.empty()) words.push_back("unhealthy: " + join(bad, " "));
  if (text(status(node, "presence")) == "Disappeared") words.push_back("disappeared");
  const std::string acceptance = text(spec(node, "acceptance"));
  if (acceptance == "pending") words.push_back("waits for acceptance");
  if (acceptance == "rejected") words.push_back("rejected");
  if (!words.empty()) return join(words, ", ");
  return services.is_object() && !services.empty() ? "healthy" : "";
}

std::string shown_role(const Json& node, const std::string& leader) {
  const std::string role = text(node, "role");
  return !leader.empty() && text(node, "name") == leader && role == "manager" ? "manager (leader)"
                                                                              : role;
}

std::string shown_services(const Json& node, const std::string& except) {
  std::vector<std::string> out;
  const Json& services = status(node, "services");
  if (!services.is_object()) return "";
  for (const auto& [name, s] : services.items()) {
    if (name == except) continue;
    const std::string version = text(s, "version");
    out.push_back(version.empty() ? name : name + " " + version);
  }
  return join(out, ", ");
}

std::string leader_of(const Json& nodes) {
  for (const char* service : {"swarm", "ucp", "etcd"}) {
    std::string newest, leader;
    for (const Json& node : nodes) {
      const Json& s = field(status(node, "services"), service);
      const std::string observed = text(s, "observed");
      if (observed <= newest) continue;
      for (const Json& member : field(s, "members")) {
        if (field(member, "leader") != true) continue;
        leader = text(member, "name");
        newest = observed;
      }
      if (newest != observed && text(s, "role") == "leader") {
        leader = text(node, "name");
        newest = observed;
      }
    }
    if (!leader.empty()) return leader;
  }
  return "";
}

}  // namespace clusterctl::cli
