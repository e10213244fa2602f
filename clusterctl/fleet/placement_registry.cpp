#include "fleet/placement_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/patterns.h"
#include "fleet/vars.h"

namespace clusterctl::fleet {
namespace {

constexpr std::string_view kController = "dtr-controller", kReplica = "dtr-replica";

// Registry nodes that are commissioned and not in the request.
std::vector<const Standing*> standing_registry(const Placement& p) {
  std::vector<const Standing*> out;
  for (const Standing& s : p.standing) {
    if (is_registry(s.node->status.applied->capabilities)) out.push_back(&s);
  }
  return out;
}

bool is_healthy(const Node& node, const std::vector<std::string>& services) {
  if (node.status.presence == Presence::kDisappeared) return false;
  return std::all_of(services.begin(), services.end(), [&](const std::string& name) {
    const auto it = node.status.services.find(name);
    return it == node.status.services.end() || it->second.healthy;
  });
}

// Where images are kept, by the value of dtr_storage.
struct Storage {
  std::string_view word;
  bool shared;
};
constexpr Storage kStorage[] = {
    {"local", false}, {"filesystem", false}, {"volplugin", true}, {"nfs", true}, {"s3", true},
    {"azure", true},  {"gcs", true},         {"swift", true},     {"oss", true},
};

std::string storage_of(const Json& vars) {
  const std::string word = var_text(vars, "dtr_storage");
  return word.empty() || word == "filesystem" ? "local" : word;
}

const Storage* known_storage(std::string_view word) {
  const auto it = std::find_if(std::begin(kStorage), std::end(kStorage),
                               [&](const Storage& s) { return s.word == word; });
  return it == std::end(kStorage) ? nullptr : &*it;
}

constexpr const char* kShared =
    "`clusterctl global set dtr_storage=nfs` (or volplugin, s3, azure, gcs, swift, oss)";

}  // namespace

bool is_registry(const std::vector<std::string>& capabilities) {
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [](const std::string& s) { return s.rfind("dtr-", 0) == 0; });
}

std::vector<std::string> with_variable_forms(const Node& node, std::vector<std::string> given,
                                             const std::vector<std::string>& group_default,
                                             const Json& vars, const Json& own_vars) {
  if (is_registry(given)) return given;
  const Json* replica = find_var(own_vars, "dtr_replica");
  const bool controller = var_text(vars, "dtr_bootstrap_node_name") == node.name;
  if (!controller && !(replica && *replica == true)) return given;
  if (given.empty()) {
    given = group_default;
    std::erase(given, "ucp-controller");  // nobody asked for it, and the registry excludes it
  }
  given.emplace_back(controller ? kController : kReplica);
  std::sort(given.begin(), given.end());
  return given;
}

void check_registry(const Placement& p, Findings& out) {
  std::string first;
  for (const Standing* s : standing_registry(p)) {
    if (contains(s->node->status.applied->capabilities, kController)) first = s->node->name;
  }
  for (const Candidate& c : p.candidates) {
    const bool controller = contains(c.capabilities, kController),
               replica = contains(c.capabilities, kReplica);
    if (is_registry(c.capabilities) && contains(c.capabilities, "ucp-controller")) {
      out.refuse(
          "ucp_with_dtr", c,
          fmt::format("{} cannot be ucp-controller and carry the registry", c.node->name),
          "put dtr-* on another node: `--capabilities=dtr-controller` without ucp-controller");
    }
    if (controller && replica) {
      out.refuse("dtr_twice", c,
                 fmt::format("{} cannot be dtr-controller and dtr-replica", c.node->name),
                 "name one of the two");
    }
    if (c.group_manages && is_registry(c.capabilities)) {
      out.warn("joins_as_worker", c.node->name,
               fmt::format("{} joins as a worker although its group is {}: a node of the registry "
                           "is no manager",
                           c.node->name, c.host_group),
               "`--host-group=service-worker` says the same");
    }
    if (!controller) continue;
    if (!first.empty()) {
      out.refuse("second_dtr_controller", c,
                 fmt::format("{} would be a second dtr-controller; {} is it", c.node->name, first),
                 "further registry nodes are `--capabilities=dtr-replica`");
    }
    first = c.node->name;
  }
}

// That the registry's own needs are met (ucp) is the rule of the catalog's `needs`; a replica needs
// another registry node besides.
void check_registry_cluster(const Placement& p, Findings& out) {
  const auto standing = standing_registry(p);
  const bool healthy = std::any_of(standing.begin(), standing.end(), [&](const Standing* s) {
    return is_healthy(*s->node, p.registry_services);
  });
  const bool comes = std::any_of(p.candidates.begin(), p.candidates.end(), [](const Candidate& c) {
    return contains(c.capabilities, kController);
  });
  if (healthy || (comes && standing.empty())) return;
  for (const Candidate& c : p.candidates) {
    if (!contains(c.capabilities, kReplica) || contains(c.capabilities, kController)) continue;
    if (standing.empty()) {
      out.refuse("no_registry", c,
                 fmt::format("{} would be a replica of a registry that is not there", c.node->name),
                 "commission a dtr-controller first, or name one in the same request: `clusterctl "
                 "node commission NAME --host-group=service-worker --capabilities=dtr-controller`");
    } else {
      const std::string& other = standing[0]->node->name;
      out.refuse("registry_unhealthy", c,
                 fmt::format("{} has to join the registry through a healthy node of it, and none "
                             "is: {}",
                             c.node->name, other),
                 fmt::format("bring {0} back, then `clusterctl node verify {0}`", other));
    }
  }
}

void check_registry_storage(const Placement& p, Findings& out) {
  const auto standing = standing_registry(p);
  size_t total = standing.size();
  const Candidate* first = nullptr;
  for (const Candidate& c : p.candidates) total += is_registry(c.capabilities) ? 1 : 0;
  for (const Candidate& c : p.candidates) {
    if (!is_registry(c.capabilities)) continue;
    const std::string word = storage_of(c.vars);
    const Storage* storage = known_storage(word);
    if (!first) first = &c;
    const std::string before =
        !standing.empty() ? storage_of(standing[0]->vars) : storage_of(first->vars);
    const std::string& other = !standing.empty() ? standing[0]->node->name : first->node->name;
    const bool blade = c.node->status.hardware && c.node->status.hardware->series == "b-series";
    if (!storage) {
      std::vector<std::string> words;
      for (const Storage& s : kStorage) words.emplace_back(s.word);
      out.refuse("unknown_storage", c,
                 fmt::format("{}: dtr_storage {} is not known", c.node->name, shown(word)),
                 "one of: " + join(words, ", "));
    } else if (word != before) {
      out.refuse("storage_differs", c,
                 fmt::format("{} would keep images in {}, {} keeps them in {}", c.node->name, word,
                             other, before),
                 "set dtr_storage once for all nodes of the registry, as a global");
    } else if (!storage->shared && blade) {
      out.refuse("local_storage_on_blade", c,
                 fmt::format("{} is a blade (b-series), whose disk is no place for images: "
                             "dtr_storage is local",
                             c.node->name),
                 std::string(kShared) + ", or choose a rack server");
    } else if (!storage->shared && total > 1) {
      out.refuse("storage_not_shared", c,
                 fmt::format("{}: {} registry nodes need storage that they share, dtr_storage is "
                             "local",
                             c.node->name, total),
                 kShared);
    } else if (!storage->shared) {
      out.warn("local_storage", c.node->name,
               fmt::format("{} keeps the images on its own disk: they are lost with it, and no "
                           "replica can be added",
                           c.node->name),
               kShared);
    }
  }
}

namespace {

// Who the controller of the registry is, by name.
void check_bootstrap(const Placement& p, Findings& out) {
  const bool registry = std::any_of(p.candidates.begin(), p.candidates.end(),
                                    [](const Candidate& c) { return is_registry(c.capabilities); });
  for (const Candidate& c : p.candidates) {
    const std::string name = var_text(c.vars, "dtr_bootstrap_node_name");
    if (name.empty()) continue;
    if (!p.snapshot->by_name(name)) {
      std::string hint = "`clusterctl node ls` shows the names";
      for (const auto& [id, node] : p.snapshot->nodes) {
        if (node.spec.addr == name) hint = "that is the address of " + node.name;
      }
      if (registry) {
        out.refuse("unknown_bootstrap_node", c,
                   fmt::format("{}: dtr_bootstrap_node_name names {}, and there is no such node",
                               c.node->name, shown(name)),
                   hint);
      } else if (&c == &p.candidates.front()) {
        out.warn("unused_registry_variable", "",
                 fmt::format("dtr_bootstrap_node_name names {}, and there is no such node; no node "
                             "of this request is of the registry",
                             shown(name)),
                 hint);
      }
      continue;
    }
    if (contains(c.capabilities, kController) && name != c.node->name) {
      out.refuse("registry_contradiction", c,
                 fmt::format("{} is named as dtr-controller, dtr_bootstrap_node_name says {}",
                             c.node->name, name),
                 "make it dtr-replica, or set dtr_bootstrap_node_name to its name");
    }
    if (contains(c.capabilities, kReplica) && name == c.node->name) {
      out.refuse("registry_contradiction", c,
                 fmt::format("{} is named as dtr-replica, dtr_bootstrap_node_name makes it the "
                             "controller",
                             c.node->name),
                 "drop one of the two");
    }
  }
}

}  // namespace

void check_registry_variables(const Placement& p, Findings& out) {
  check_bootstrap(p, out);
  if (p.candidates.empty()) return;
  if (const Json* everywhere = find_var(p.snapshot->globals, "dtr_replica");
      everywhere && *everywhere != false) {
    return out.refuse("dtr_replica_everywhere", p.candidates.front(),
                      "dtr_replica is set for every node: each of them would be of the registry",
                      "set it as a variable of the nodes that are meant, or "
                      "`--capabilities=dtr-replica`");
  }
  for (const Candidate& c : p.candidates) {
    const Json* value = find_var(c.vars, "dtr_replica");
    if (!value) continue;
    const bool replica = contains(c.capabilities, kReplica);
    if (!value->is_boolean()) {
      out.refuse("registry_contradiction", c,
                 fmt::format("{}: dtr_replica is {}, not true or false", c.node->name,
                             shown(dump_json(*value))),
                 "without quotes: dtr_replica: true");
    } else if (*value == true && !replica) {
      out.refuse(
          "registry_contradiction", c,
          fmt::format("{} has dtr_replica: true and is named as dtr-controller", c.node->name),
          "drop one of the two");
    } else if (*value == false && replica) {
      out.refuse("registry_contradiction", c,
                 fmt::format("{} has dtr_replica: false and is named as dtr-replica", c.node->name),
                 "drop one of the two");
    }
  }
}

void check_registry_count(const Placement& p, Findings& out) {
  int fresh = 0;
  for (const Candidate& c : p.candidates) fresh += is_registry(c.capabilities) ? 1 : 0;
  const int total = static_cast<int>(standing_registry(p).size()) + fresh;
  if (fresh == 0 || total % 2 != 0) return;
  out.warn("even_registry", "",
           fmt::format("{} registry nodes tolerate the loss of {}, no more than {} do", total,
                       (total - 1) / 2, total - 1),
           "use an odd number: 1, 3, 5 or 7");
}

}  // namespace clusterctl::fleet
