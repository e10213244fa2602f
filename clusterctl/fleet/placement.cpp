#include "fleet/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/patterns.h"
#include "fleet/placement_host.h"
#include "fleet/placement_registry.h"
#include "fleet/placement_vip.h"
#include "fleet/recognize.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

void may_be_used(const Placement& p, Findings& out) {
  for (const Candidate& c : p.candidates) {
    const NodeSpec& spec = c.node->spec;
    if (spec.acceptance != Acceptance::kAccepted) {
      out.refuse("not_accepted", c,
                 fmt::format("{} is {}, not accepted", c.node->name, word(spec.acceptance)),
                 fmt::format("`clusterctl node accept {}`", c.node->name));
    }
    if (spec.allocation != Allocation::kInService) {
      out.refuse("not_in_service", c,
                 fmt::format("{} is marked {}", c.node->name, word(spec.allocation)),
                 fmt::format("`clusterctl node allocate {} --as in-service` first", c.node->name));
    }
    if (const Condition* conflict = find_condition(c.node->status, condition::kIdentityConflict)) {
      out.refuse("identity_conflict", c,
                 fmt::format("{} has an identity conflict: {}", c.node->name, conflict->reason),
                 conflict_hint(*c.node));
    }
  }
}

void worker_needs_manager(const Placement& p, Findings& out) {
  const bool new_manager = std::any_of(p.candidates.begin(), p.candidates.end(),
                                       [](const Candidate& c) { return c.role == Role::kManager; });
  if (p.peer || (p.managers.empty() && new_manager)) return;
  for (const Candidate& c : p.candidates) {
    if (p.managers.empty()) {
      out.refuse("no_manager", c,
                 fmt::format("{} would be a worker of a cluster without a manager", c.node->name),
                 "commission a manager first, or name one in the same request: "
                 "`clusterctl node commission NAME --host-group=service-master`");
    } else {
      const Problem why = no_manager_to_ask(
          p.managers,
          fmt::format("{} has to join through a manager, and none of them answers", c.node->name));
      out.refuse(why.code, c, why.message, why.hint);
    }
  }
}

// An attribute that two machines cannot share.
struct Same {
  std::string_view code, what;
  std::string (*of)(const Node&);
};

void compare(const Placement& p, const Same& same, Findings& out) {
  std::map<std::string, const Node*> seen;
  for (const auto& [id, node] : p.snapshot->nodes) {
    const bool candidate =
        std::any_of(p.candidates.begin(), p.candidates.end(),
                    [&, &self = node](const Candidate& c) { return c.node->id == self.id; });
    const std::string value = same.of(node);
    if (!value.empty() && !candidate && is_commissioned(node)) seen.emplace(value, &node);
  }
  for (const Candidate& c : p.candidates) {
    const std::string value = same.of(*c.node);
    if (value.empty()) continue;
    const auto [it, fresh] = seen.emplace(value, c.node);
    if (fresh) continue;
    out.refuse(
        std::string(same.code), c,
        fmt::format("{} and {} have the same {} {}", c.node->name, it->second->name, same.what,
                    shown(value)),
        fmt::format("one of the two records is wrong: `clusterctl node inspect {}`; remove it with "
                    "`clusterctl node rm`",
                    it->second->name));
  }
}

void unique(const Placement& p, Findings& out) {
  compare(p, {"same_name", "name", [](const Node& n) { return n.name; }}, out);
  compare(p, {"same_addr", "address", [](const Node& n) { return canonical_addr(n.spec.addr); }},
          out);
  compare(p,
          {"same_machine_id", "machine id",
           [](const Node& n) {
             return n.status.hardware ? lower(n.status.hardware->machine_id) : std::string();
           }},
          out);
}

// What vendors write when they write nothing.
bool means_nothing(const std::string& serial) {
  static const std::set<std::string> kNothing{"",
                                              "0",
                                              "none",
                                              "n/a",
                                              "na",
                                              "not specified",
                                              "default string",
                                              "to be filled by o.e.m.",
                                              "system serial number",
                                              "unknown",
                                              "empty",
                                              "invalid",
                                              "0123456789",
                                              "123456789",
                                              "chassis serial number"};
  return kNothing.count(serial) != 0 || serial.find_first_not_of("0 .-") == std::string::npos;
}

// Equal serials with different machine ids are two installations. When both answer they are two
// machines (virtual ones often share the serial of their host); when one has disappeared it is most
// likely the same machine, installed again.
void serials(const Placement& p, Findings& out) {
  const auto serial = [](const Node& n) {
    return n.status.hardware ? lower(trim(n.status.hardware->serial)) : std::string();
  };
  for (const Candidate& c : p.candidates) {
    if (means_nothing(serial(*c.node))) continue;
    for (const auto& [id, other] : p.snapshot->nodes) {
      if (id == c.node->id || !is_commissioned(other) || serial(other) != serial(*c.node)) continue;
      const std::string mine = c.node->status.hardware->machine_id,
                        theirs = other.status.hardware->machine_id;
      if (!mine.empty() && !theirs.empty() && mine == theirs) continue;  // same_machine_id says it
      const std::string message =
          fmt::format("{} and {} have the same serial number {}", c.node->name, other.name,
                      shown(c.node->status.hardware->serial));
      if (mine.empty() || theirs.empty() || other.status.presence == Presence::kDisappeared) {
        out.refuse(
            "same_serial", c,
            message + (other.status.presence == Presence::kDisappeared
                           ? ", and " + other.name + " does not answer"
                           : ""),
            fmt::format("if it is the same machine: `clusterctl node decommission {} --force "
                        "--i-have-powered-it-off` first",
                        other.name));
      } else {
        out.warn("shared_serial", c.node->name, message, "fine for virtual machines on one host");
      }
      break;
    }
  }
}

void memory(const Placement& p, Findings& out) {
  for (const Candidate& c : p.candidates) {
    if (!c.node->status.hardware || c.node->status.hardware->memory_mb <= 0) continue;
    const int64_t there = c.node->status.hardware->memory_mb;
    if (c.memory_mb <= there) continue;
    out.refuse("too_little_memory", c,
               fmt::format("{} has {} MB of memory, its services need at least {} MB", c.node->name,
                           there, c.memory_mb),
               "services: " + join(c.services, ", "));
  }
}

void ports(const Placement& p, Findings& out) {
  const auto name = [](const PortUse& u) {
    return u.service + (u.variable.empty() ? "" : " (" + u.variable + ")");
  };
  for (const Candidate& c : p.candidates) {
    std::map<int, const PortUse*> taken;
    for (const PortUse& use : c.ports) {
      if (use.port < 1 || use.port > 65535) {
        out.refuse("bad_port", c,
                   fmt::format("{}: the variable {} holds no port", c.node->name, use.variable),
                   "1 to 65535");
        continue;
      }
      const auto [it, fresh] = taken.emplace(use.port, &use);
      if (fresh) continue;
      const std::string movable = use.variable.empty() ? it->second->variable : use.variable;
      out.refuse("port_conflict", c,
                 fmt::format("{}: {} and {} both want port {}", c.node->name, name(*it->second),
                             name(use), use.port),
                 movable.empty() ? "put the services on different nodes"
                                 : fmt::format("set {} to a free port", movable));
    }
  }
}

// Services that are healthy where they were last seen.
std::set<std::string> healthy_services(const Placement& p) {
  std::set<std::string> out;
  for (const auto& [id, node] : p.snapshot->nodes) {
    if (!is_commissioned(node) || node.status.presence == Presence::kDisappeared) continue;
    for (const auto& [service, status] : node.status.services) {
      if (status.healthy) out.insert(service);
    }
  }
  for (const Candidate& c : p.candidates) out.insert(c.services.begin(), c.services.end());
  return out;
}

// A worker's own half of a service with members says nothing about the service: a manager has to
// carry it, healthy, or come in the same request.
bool members_are_healthy(const Placement& p, const std::string& service) {
  const auto manager = [&](const Node* node) {
    const auto it = node->status.services.find(service);
    return node->status.presence != Presence::kDisappeared && it != node->status.services.end() &&
           it->second.healthy;
  };
  const auto candidate = [&](const Candidate& c) {
    return c.role == Role::kManager && contains(c.services, service);
  };
  return std::any_of(p.managers.begin(), p.managers.end(), manager) ||
         std::any_of(p.candidates.begin(), p.candidates.end(), candidate);
}

bool is_carried(const Placement& p, const std::string& service) {
  return std::any_of(p.managers.begin(), p.managers.end(), [&](const Node* node) {
    return node->status.services.count(service) ||
           (node->status.applied && contains(node->status.applied->services, service));
  });
}

void check_need(const Placement& p, const Candidate& c, const std::string& service,
                const std::string& need, const std::set<std::string>& healthy, Findings& out) {
  const bool of_members = p.member_services.count(need) && c.role == Role::kWorker;
  if (of_members ? members_are_healthy(p, need) : healthy.count(need) != 0) return;
  if (of_members && is_carried(p, need)) {
    out.refuse(
        "unhealthy_service", c,
        fmt::format("{}: {} needs {}, and no manager that answers has it healthy", c.node->name,
                    service, need),
        fmt::format("`clusterctl node verify {}` says what is wrong with it", p.managers[0]->name));
  } else {
    out.refuse("missing_service", c,
               fmt::format("{}: {} needs {}, which is nowhere healthy in the cluster", c.node->name,
                           service, need),
               fmt::format("commission a node that carries {} first", need));
  }
}

void together(const Placement& p, Findings& out) {
  const std::set<std::string> healthy = healthy_services(p);
  for (const Candidate& c : p.candidates) {
    for (const auto& [service, other] : c.forbids) {
      if (!contains(c.services, service) || !contains(c.services, other)) continue;
      out.refuse("forbidden_together", c,
                 fmt::format("{}: {} and {} must not be on one node", c.node->name, service, other),
                 "choose other capabilities: `clusterctl node commission NAME --capabilities=…`");
    }
    for (const auto& [service, need] : c.needs) check_need(p, c, service, need, healthy, out);
  }
}

void versions(const Placement& p, Findings& out) {
  for (const Candidate& c : p.candidates) {
    for (const auto& [service, variable] : c.version_variables) {
      const auto it = c.vars.find(variable);
      if (it == c.vars.end() || !it->is_number()) continue;
      out.refuse("number_as_version", c,
                 fmt::format("{}: {} is the number {}, and numbers lose digits", c.node->name,
                             variable, dump_json(*it)),
                 "quote it, e.g. \"20.10\"");
    }
    for (const std::string& service : c.unknown_services) {
      out.refuse("unknown_service", c,
                 fmt::format("{}: spec.versions names {}, which has no version to choose",
                             c.node->name, shown(service)),
                 "remove it from spec.versions");
    }
  }
}

void manager_count(const Placement& p, Findings& out) {
  int fresh = 0;
  for (const Candidate& c : p.candidates) fresh += c.role == Role::kManager ? 1 : 0;
  const int total = static_cast<int>(p.managers.size()) + fresh;
  if (fresh == 0) return;
  if (total % 2 == 0) {
    out.warn("even_managers", "",
             fmt::format("{} managers tolerate the loss of {}, no more than {} do", total,
                         (total - 1) / 2, total - 1),
             "use an odd number: 1, 3, 5 or 7");
  }
  if (total > 7) {
    out.warn(
        "many_managers", "",
        fmt::format("{} managers tolerate the loss of {}, but every change waits for {} of them",
                    total, (total - 1) / 2, total / 2 + 1),
        "3 or 5 are enough for most clusters, 7 for the largest");
  }
}

}  // namespace

void Findings::refuse(std::string code, const Candidate& c, std::string message, std::string hint) {
  problems.add(Code::kRefused,
               Problem{std::move(code), std::move(message), std::move(hint), c.node->name});
}

void Findings::warn(std::string code, const std::string& node, std::string message,
                    std::string hint) {
  warnings.push_back({std::move(code), std::move(message), std::move(hint), node});
}

const std::vector<Rule>& placement_rules() {
  static const std::vector<Rule> kRules{
      {"may be used", {"not_accepted", "not_in_service", "identity_conflict"}, may_be_used},
      {"a worker needs a manager", {"no_manager", "no_reachable_manager"}, worker_needs_manager},
      {"names and addresses are unique", {"same_name", "same_addr", "same_machine_id"}, unique},
      {"serial numbers", {"same_serial", "shared_serial"}, serials},
      {"the virtual address", vip_codes(), check_vip},
      {"registry nodes",
       {"ucp_with_dtr", "dtr_twice", "second_dtr_controller", "joins_as_worker"},
       check_registry},
      {"a replica needs a registry", {"no_registry", "registry_unhealthy"}, check_registry_cluster},
      {"where the registry keeps images",
       {"unknown_storage", "storage_differs", "local_storage_on_blade", "storage_not_shared",
        "local_storage"},
       check_registry_storage},
      {"variables of the registry",
       {"unknown_bootstrap_node", "registry_contradiction", "dtr_replica_everywhere",
        "unused_registry_variable"},
       check_registry_variables},
      {"the first manager",
       {"misplaced_variable", "unknown_first_manager", "first_manager_missing"},
       check_first_manager},
      {"the controller's own machine", {"own_host"}, check_own_host},
      {"memory", {"too_little_memory"}, memory},
      {"ports", {"bad_port", "port_conflict"}, ports},
      {"services together",
       {"forbidden_together", "missing_service", "unhealthy_service"},
       together},
      {"versions", {"number_as_version", "unknown_service"}, versions},
      {"number of managers", {"even_managers", "many_managers"}, manager_count},
      {"number of registry nodes", {"even_registry"}, check_registry_count},
  };
  return kRules;
}

Findings check_placement(const Placement& placement) {
  Findings out;
  for (const Rule& rule : placement_rules()) rule.check(placement, out);
  return out;
}

}  // namespace clusterctl::fleet
