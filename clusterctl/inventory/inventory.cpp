#include "inventory/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/host_name.h"
#include "base/strings.h"
#include "inventory/host_spec.h"
#include "inventory/sources.h"

namespace clusterctl::inventory {
namespace {

// The groups of the inventory as a graph: who contains whom, and how deep.
class Groups {
 public:
  explicit Groups(Sources& sources) : sources_(sources) {
    std::set<std::string> nested;
    for (const auto& [name, group] : sources.groups) {
      if (name != "all") nested.insert(group.children.begin(), group.children.end());
    }
    for (auto& [name, group] : sources.groups) {
      if (name != "all" && !nested.contains(name)) visit(name, 1, {});
    }
    for (const auto& [name, group] : sources.groups) {
      if (name != "all" && !depth_.contains(name)) {
        sources.problem("cycle", fmt::format("group \"{}\" contains itself", one_line(name)));
      }
      for (const std::string& child : group.children) parents_[child].insert(name);
    }
  }

  // Groups of a host without `all`, in the order in which their variables are laid over one
  // another.
  std::vector<std::string> of(const std::string& host) const {
    std::set<std::string> found;
    const std::function<void(const std::string&)> climb = [&](const std::string& name) {
      if (name == "all" || !found.insert(name).second) return;
      const auto it = parents_.find(name);
      if (it == parents_.end()) return;
      for (const std::string& parent : it->second) climb(parent);
    };
    const auto it = direct().find(host);
    if (it != direct().end()) {
      for (const std::string& name : it->second) climb(name);
    }
    std::vector<std::string> out(found.begin(), found.end());
    std::stable_sort(out.begin(), out.end(), [&](const std::string& a, const std::string& b) {
      return depth(a) < depth(b);
    });
    return out;
  }

 private:
  static constexpr int kMaxDepth = 64;

  void visit(const std::string& name, int depth, std::set<std::string> above) {
    if (!above.insert(name).second || depth > kMaxDepth) {
      sources_.problem("cycle", fmt::format("group \"{}\" contains itself", one_line(name)));
      return;
    }
    int& known = depth_[name];
    if (known >= depth) return;
    known = depth;
    for (const std::string& child : sources_.groups.at(name).children)
      visit(child, depth + 1, above);
  }

  int depth(const std::string& name) const {
    const auto it = depth_.find(name);
    return it == depth_.end() ? 0 : it->second;
  }

  const std::map<std::string, std::vector<std::string>>& direct() const {
    if (direct_.empty()) {
      for (const auto& [name, group] : sources_.groups) {
        for (const std::string& host : group.hosts) direct_[host].push_back(name);
      }
    }
    return direct_;
  }

  Sources& sources_;
  std::map<std::string, int> depth_;
  std::map<std::string, std::set<std::string>> parents_;
  mutable std::map<std::string, std::vector<std::string>> direct_;
};

// Where Ansible was asked, its word counts; a value that is the global one is no variable of the
// host.
void settle_with(const Sources& sources, const std::string& host, const Json& globals, Json& own) {
  const auto it = sources.effective.find(host);
  if (it == sources.effective.end()) return;
  for (const auto& [key, value] : it->second.items()) {
    const auto global = globals.find(key);
    const bool is_global = global != globals.end() && *global == value;
    const auto mine = own.find(key);
    if (mine == own.end() && global == globals.end()) continue;  // Ansible's own (ansible_local)
    if (mine == own.end() ? is_global : *mine == value) continue;
    if (is_global) {
      own.erase(key);
    } else {
      own[key] = value;
    }
  }
}

NodeDraft make_draft(const std::string& name, const Host& host,
                     const std::vector<std::string>& groups,
                     const std::vector<std::string>& host_groups, Sources& sources) {
  const Group& all = sources.groups.at("all");
  Json own = Json::object();
  for (const std::string& g : groups) overlay(own, sources.groups.at(g).vars);
  // group_vars/all beats variables that stand in the inventory file for any group.
  for (const auto& [key, value] : all.file_vars.items()) own.erase(key);
  for (const std::string& g : groups) overlay(own, sources.groups.at(g).file_vars);
  // What a group says of everybody anyway is left to the globals.
  Json everything = all.vars;
  overlay(everything, all.file_vars);
  for (const auto& [key, value] : everything.items()) {
    const auto it = own.find(key);
    if (it != own.end() && *it == value) own.erase(it);
  }
  overlay(own, host.vars);
  overlay(own, host.file_vars);
  settle_with(sources, name, everything, own);
  overlay(everything, own);

  // The spelling the daemon stores: the same host in another spelling is the same node.
  const std::string normal = normal_host_name(name);
  NodeDraft draft{normal, host_spec(normal, everything, own, sources)};
  std::vector<std::string> wanted;
  for (const std::string& g : groups) {
    if (std::find(host_groups.begin(), host_groups.end(), g) != host_groups.end())
      wanted.push_back(g);
  }
  if (wanted.size() > 1) {
    sources.problem("two_host_groups",
                    fmt::format("is in several host groups: {}", join(wanted, ", ")),
                    "a node has one", one_line(name));
  } else if (wanted.size() == 1) {
    draft.spec["host_group"] = wanted[0];
  } else {
    sources.notes.push_back(
        fmt::format("{} is in none of the host groups ({}): give it one when you commission it",
                    one_line(name), join(host_groups, ", ")));
  }
  return draft;
}

void check_unique_names(const std::vector<NodeDraft>& nodes, Sources& sources) {
  std::set<std::string> names;
  for (const NodeDraft& node : nodes) {
    if (names.insert(node.name).second) continue;
    sources.problem("duplicate_name", "stands there in two spellings", "keep one of them",
                    node.name);
  }
}

void check_unique_addresses(const std::vector<NodeDraft>& nodes, Sources& sources) {
  std::map<std::pair<std::string, int64_t>, std::string> owners;
  for (const NodeDraft& node : nodes) {
    const std::string addr = get_string(node.spec, "addr").value_or("");
    const Json ssh = get_object(node.spec, "ssh").value_or(Json::object());
    if (addr.empty()) continue;
    const auto [it, fresh] =
        owners.try_emplace({addr, get_int(ssh, "port", 22).value_or(22)}, node.name);
    if (!fresh) {
      sources.problem("duplicate_addr", fmt::format("has the address {} of {}", addr, it->second),
                      "", node.name);
    }
  }
}

}  // namespace

namespace {

Result<Inventory> make_inventory(Sources sources, const std::string& shown,
                                 const std::vector<std::string>& host_groups) {
  const Groups groups(sources);
  Inventory out;
  if (sources.problems.empty()) {
    for (const auto& [name, host] : sources.hosts) {
      out.nodes.push_back(make_draft(name, host, groups.of(name), host_groups, sources));
    }
    check_unique_names(out.nodes, sources);
    check_unique_addresses(out.nodes, sources);
    Json all = sources.groups.at("all").vars;
    overlay(all, sources.groups.at("all").file_vars);
    out.globals = plain_vars(all, "group all", "", sources);
    if (out.nodes.empty() && sources.problems.empty()) {
      sources.problem("no_hosts", fmt::format("{} has no hosts", shown));
    }
  }
  if (!sources.problems.empty()) {
    Error error{Code::kRefused, "bad_inventory",
                fmt::format("{} cannot be taken over; nothing was changed", shown), "",
                std::move(sources.problems)};
    if (error.problems.size() == 1 && error.problems[0].node.empty()) {
      error.reason = error.problems[0].code;
      error.message = error.problems[0].message;
      error.hint = error.problems[0].hint;
      error.problems.clear();
    }
    return fail(std::move(error));
  }
  out.notes = std::move(sources.notes);
  return out;
}

}  // namespace

Result<Inventory> read_inventory(const fs::path& path,
                                 const std::vector<std::string>& host_groups) {
  return make_inventory(read_sources(path), one_line(path.string()), host_groups);
}

Result<Inventory> inventory_of_ansible(const std::string& exported, const std::string& listed,
                                       const std::string& shown,
                                       const std::vector<std::string>& host_groups) {
  auto one = parse_json_object(exported, "the answer of ansible-inventory --list --export");
  if (!one) return fail(one.error());
  auto two = parse_json_object(listed, "the answer of ansible-inventory --list");
  if (!two) return fail(two.error());
  return make_inventory(sources_of_ansible(*one, *two), shown, host_groups);
}

}  // namespace clusterctl::inventory
