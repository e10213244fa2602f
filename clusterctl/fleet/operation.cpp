#include "fleet/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "fleet/names.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"

namespace clusterctl::fleet {
namespace {

bool bump(Node& node, bool changed) {
  if (changed) ++node.resource_version;
  return changed;
}

// `node move`: the address alone is the operator's word on where the machine is. Among other fields
// it is what was read before.
bool says_only_where(const Json& patch) {
  const auto spec = patch.find("spec");
  return spec != patch.end() && spec->is_object() && spec->size() == 1 && spec->contains("addr");
}

}  // namespace

Status check_unique(const Snapshot& snapshot, std::string_view name, const std::string& addr,
                    std::string_view except) {
  const std::string wanted = canonical_addr(addr);
  // Commands take ids and names: one text must not mean two nodes.
  if (const auto it = snapshot.nodes.find(std::string(name));
      it != snapshot.nodes.end() && it->first != except) {
    return fail(Code::kConflict, "name_taken",
                fmt::format("{} is the id of node {}", name, it->second.name),
                "choose another name");
  }
  for (const auto& [id, other] : snapshot.nodes) {
    if (id == except) continue;
    if (same_name(other.name, name)) {
      return fail(
          Code::kConflict, "name_taken",
          other.name == name
              ? fmt::format("a node named {} exists ({})", name, id)
              : fmt::format("{} is another spelling of node {} ({})", name, other.name, id),
          fmt::format("choose another name; `clusterctl node get {}` shows that node", other.name));
    }
    if (!wanted.empty() && canonical_addr(other.spec.addr) == wanted) {
      return fail(
          Code::kConflict, "addr_taken",
          fmt::format("{} is the address of node {}", addr, other.name),
          fmt::format("choose another address; when {0} has left it, `clusterctl node move {0} "
                      "ADDRESS` first",
                      other.name));
    }
  }
  return {};
}

Result<Node> add_node(const Snapshot& snapshot, const NewNode& request, std::string id, Time now) {
  if (auto fine = check_unique(snapshot, request.name, request.spec.addr); !fine)
    return fail(fine.error());
  Node node;
  node.id = std::move(id);
  node.name = request.name;
  node.created = now;
  node.spec = request.spec;
  if (!request.acceptance_given) {
    node.spec.acceptance =
        snapshot.cluster.accept_policy == "manual" ? Acceptance::kPending : Acceptance::kAccepted;
  }
  return node;
}

Status check_removable(const Node& node) {
  if (!is_commissioned(node)) return {};
  return fail(Code::kConflict, "commissioned",
              fmt::format("{} is {} and cannot be removed", node.name, word(node.status.lifecycle)),
              fmt::format("`clusterctl node decommission {}` first", node.name));
}

bool set_spec(Node& node, NodeSpec spec) {
  if (node.spec == spec) return false;
  node.spec = std::move(spec);
  ++node.generation;
  return bump(node, true);
}

Result<bool> patch_node(const Snapshot& snapshot, Node& node, const Json& body, Time now) {
  auto patch = apply_spec_patch(node, body);
  if (!patch) return fail(patch.error());
  if (auto fine = check_patch(node, *patch); !fine) return fail(fine.error());
  if (patch->spec.addr != node.spec.addr) {
    if (auto fine = check_unique(snapshot, node.name, patch->spec.addr, node.id); !fine)
      return fail(fine.error());
  }
  const std::string addr = node.spec.addr;
  bool changed = set_spec(node, std::move(patch->spec));
  if (canonical_addr(addr) != canonical_addr(node.spec.addr)) {
    note_move(node, addr, now);
  } else if (node.status.elsewhere && says_only_where(body)) {
    node.status.elsewhere.reset();
    changed = bump(node, true);
  }
  return changed;
}

Status apply_event(Node& node, Event event) {
  const auto to = next(node, event);
  if (!to) return fail(to.error());
  if (*to == node.status.lifecycle) return {};
  node.status.previous = node.status.lifecycle;
  node.status.lifecycle = *to;
  bump(node, true);
  return {};
}

bool set_applied(Node& node, Applied applied) {
  bool changed = node.status.applied != applied;
  // What it carries no longer, after a demotion, has nothing to tell.
  changed |= std::erase_if(node.status.services, [&](const auto& entry) {
               const auto& services = applied.services;
               return std::find(services.begin(), services.end(), entry.first) == services.end();
             }) > 0;
  node.status.applied = std::move(applied);
  for (std::string_view type : {condition::kDrifted, condition::kFailed, condition::kInterrupted,
                                condition::kNeedsVerification, condition::kDirty,
                                condition::kNotCleaned, condition::kReplaced}) {
    changed |= clear_condition(node.status, type);
  }
  return bump(node, changed);
}

bool set_applied_availability(Node& node, Availability availability) {
  if (!node.status.applied || node.status.applied->availability == availability) return false;
  node.status.applied->availability = availability;
  return bump(node, true);
}

bool set_maintenance(Node& node, std::optional<Maintenance> maintenance) {
  if (node.status.maintenance == maintenance) return false;
  node.status.maintenance = std::move(maintenance);
  return bump(node, true);
}

bool clear_applied(Node& node) {
  const bool changed = node.status.applied.has_value() || !node.status.services.empty();
  node.status.applied.reset();
  node.status.services.clear();
  return bump(node, changed);
}

bool record_service(Node& node, const std::string& service, ServiceStatus status) {
  const auto it = node.status.services.find(service);
  if (it == node.status.services.end()) {
    node.status.services.emplace(service, std::move(status));
    return bump(node, true);
  }
  ServiceStatus& old = it->second;
  if (status.member_id.empty() && !status.healthy) status.member_id = old.member_id;
  const Time observed = status.observed;
  status.observed = old.observed;
  const bool changed = !(old == status);
  status.observed = observed;
  old = std::move(status);
  return bump(node, changed);
}

bool forget_service(Node& node, const std::string& service) {
  return bump(node, node.status.services.erase(service) > 0);
}

bool record_hardware(Node& node, Hardware hardware) {
  if (node.status.hardware == hardware) return false;
  node.status.hardware = std::move(hardware);
  return true;
}

bool set_presence(Node& node, Presence presence, Time now) {
  const bool changed = node.status.presence != presence;
  const bool serves = node.status.applied && (node.status.lifecycle == Lifecycle::kAllocated ||
                                              node.status.lifecycle == Lifecycle::kMaintenance);
  const bool back =
      presence == Presence::kDiscovered && node.status.presence == Presence::kDisappeared;
  if (serves && back && !has_condition(node.status, condition::kNeedsVerification)) {
    const auto seen = node.status.last_seen;
    set_condition(node, condition::kNeedsVerification,
                  seen ? fmt::format("it was away; last seen before that {}", format_time(*seen))
                       : "it was away",
                  "", now);
  }
  node.status.presence = presence;
  if (presence == Presence::kDiscovered) node.status.last_seen = now;
  return changed;
}

bool set_condition(Node& node, std::string_view type, std::string_view reason, std::string_view job,
                   Time now) {
  return bump(node, set_condition(node.status, type, reason, job, now));
}

bool clear_condition(Node& node, std::string_view type) {
  return bump(node, clear_condition(node.status, type));
}

bool add_fence(Node& node, const std::string& run) {
  constexpr size_t kMaxFences = 16;
  std::vector<std::string>& runs = node.status.fence_runs;
  const auto at = std::lower_bound(runs.begin(), runs.end(), run);
  if (at != runs.end() && *at == run) return false;
  runs.insert(at, run);
  if (runs.size() > kMaxFences) runs.erase(runs.begin());
  return bump(node, true);
}

bool clear_fences(Node& node, const std::vector<std::string>& runs) {
  const size_t gone = std::erase_if(node.status.fence_runs, [&](const std::string& run) {
    return std::find(runs.begin(), runs.end(), run) != runs.end();
  });
  return bump(node, gone > 0);
}

}  // namespace clusterctl::fleet
