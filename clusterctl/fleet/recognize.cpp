#include "fleet/recognize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

std::string look(const Node& node) {
  return fmt::format("`clusterctl node verify {}` says whether it still works", node.name);
}

// "serial A → B", of the pieces that differ.
std::string difference(const Identity& known, const Identity& seen) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view what, const std::string& a, const std::string& b) {
    if (!a.empty() && !b.empty() && lower(a) != lower(b))
      out.push_back(fmt::format("{} {} → {}", what, shown(a), shown(b)));
  };
  add("serial", known.serial, seen.serial);
  add("UUID", known.uuid, seen.uuid);
  if (out.empty()) add("MAC addresses", join(known.macs, " "), join(seen.macs, " "));
  return out.empty() ? "other network cards" : join(out, ", ");
}

// Everything by which a node may be known: as accepted and as seen.
std::vector<Identity> identities(const Node& node) {
  std::vector<Identity> out{known_identity(node)};
  if (node.status.hardware) {
    Identity seen = identity_of(*node.status.hardware, node.spec.ssh.host_key);
    if (seen != out[0]) out.push_back(std::move(seen));
  }
  return out;
}

std::vector<const Node*> twins(const Snapshot& fleet, const Node& node) {
  std::vector<const Node*> out;
  for (const Identity& mine : identities(node)) {
    for (const Node* other : alike(fleet, mine, node.id)) {
      if (std::find(out.begin(), out.end(), other) == out.end()) out.push_back(other);
    }
  }
  return out;
}

// Another machine sits at this address.
bool stranger_there(const Node& node) {
  return node.status.elsewhere && same_addr(node.status.elsewhere->addr, node.spec.addr);
}

std::string conflict_reason(const Node& node, const std::vector<const Node*>& twins) {
  if (!twins.empty()) {
    std::vector<std::string> others;
    for (const Node* t : twins) others.push_back(fmt::format("{} ({})", t->name, t->spec.addr));
    return fmt::format("{} ({}) and {} have the same identity: nothing is changed on any of them",
                       node.name, node.spec.addr, join(others, ", "));
  }
  const Elsewhere& e = *node.status.elsewhere;
  if (stranger_there(node))
    return fmt::format("another machine, {}, reports its address {}", shown(e.name), e.addr);
  return fmt::format(
      "its identity was reported at {}, and its address {} {}: `clusterctl node move {} "
      "ADDRESS` says which is right",
      e.addr, node.spec.addr,
      node.status.presence == Presence::kDisappeared ? "is silent" : "answers as well", node.name);
}

}  // namespace

bool learn(Node& node, const Identity& seen) {
  if (has_condition(node.status, condition::kHardwareReplaced))
    return false;  // nobody said yes yet
  Identity known = node.status.identity.value_or(Identity{});
  // A placeholder is silence: a machine whose firmware forgot its serial is known by it still.
  if (!usable_serial(seen.serial).empty()) known.serial = seen.serial;
  if (!usable_uuid(seen.uuid).empty()) known.uuid = seen.uuid;
  if (!seen.host_key.empty()) known.host_key = seen.host_key;
  const auto usable = [](const std::string& mac) { return !usable_mac(mac).empty(); };
  if (std::any_of(seen.macs.begin(), seen.macs.end(), usable)) known.macs = seen.macs;
  if (!has_evidence(known) || node.status.identity == known) return false;
  node.status.identity = std::move(known);
  return true;
}

bool serial_is_shared(const Snapshot& fleet, const Identity& a, const Identity& b) {
  return shared_serial(fleet, a.serial) || shared_serial(fleet, b.serial);
}

bool judge(Node& node, const LikenessRow& row, const Identity& seen, const std::string& job,
           Time now) {
  switch (row.likeness) {
    case Likeness::kReplaced:
    case Likeness::kDifferent:
      return set_condition(
          node, condition::kHardwareReplaced,
          fmt::format("{}: {}; `clusterctl node confirm-hardware {}` if that is right", row.meaning,
                      difference(known_identity(node), seen), node.name),
          job, now);
    case Likeness::kReinstalled:
      if (is_commissioned(node)) {
        set_condition(node, condition::kNeedsVerification,
                      fmt::format("{}: was it installed anew? {}", row.meaning, look(node)), job,
                      now);
      }
      [[fallthrough]];
    case Likeness::kSame:
    case Likeness::kUnknown:
      break;
  }
  // A report that is silent about what differed says nothing about it.
  const bool cleared = confirms(node.status.identity.value_or(Identity{}), seen) &&
                       clear_condition(node, condition::kHardwareReplaced);
  return learn(node, seen) || cleared;
}

void recognize_facts(Snapshot& fleet, const std::string& id, const std::string& job, Time now,
                     std::set<std::string>& changed) {
  Node& node = fleet.nodes.at(id);
  if (!node.status.hardware) return;
  const Identity seen = identity_of(*node.status.hardware, node.spec.ssh.host_key);
  // What was accepted, not what was just recorded.
  const Identity known = node.status.identity.value_or(Identity{});
  const bool shared = serial_is_shared(fleet, known, seen);
  const LikenessRow& row = compare(known, seen, shared);
  if (judge(node, row, seen, job, now)) changed.insert(id);
  if (back_at_its_address(node, row.likeness)) changed.insert(id);
}

bool back_at_its_address(Node& node, Likeness likeness) {
  const bool its_own = likeness == Likeness::kSame || likeness == Likeness::kReinstalled ||
                       !has_evidence(known_identity(node));
  if (!its_own || !stranger_there(node)) return false;
  node.status.elsewhere.reset();
  return true;
}

void settle_conflicts(Snapshot& fleet, const std::set<std::string>& ids, Time now,
                      std::set<std::string>& changed) {
  std::set<std::string> affected = ids;
  for (const std::string& id : ids) {
    const auto it = fleet.nodes.find(id);
    if (it == fleet.nodes.end()) continue;
    for (const Node* twin : twins(fleet, it->second)) affected.insert(twin->id);
  }
  for (const auto& [id, node] : fleet.nodes) {
    if (has_condition(node.status, condition::kIdentityConflict)) affected.insert(id);
  }
  // Being alike is judged from both sides, so that nobody is in conflict with one who is not.
  std::map<std::string, std::set<std::string>> partners;
  for (const std::string& id : affected) {
    const auto it = fleet.nodes.find(id);
    if (it == fleet.nodes.end()) continue;
    for (const Node* twin : twins(fleet, it->second)) {
      partners[id].insert(twin->id);
      partners[twin->id].insert(id);
    }
  }
  for (const auto& [id, others] : partners) affected.insert(id);
  for (const std::string& id : affected) {
    const auto it = fleet.nodes.find(id);
    if (it == fleet.nodes.end()) continue;
    Node& node = it->second;
    std::vector<const Node*> others;
    for (const std::string& other : partners[id]) others.push_back(&fleet.nodes.at(other));
    const bool conflict = !others.empty() || node.status.elsewhere.has_value();
    if (conflict ? set_condition(node, condition::kIdentityConflict, conflict_reason(node, others),
                                 "", now)
                 : clear_condition(node, condition::kIdentityConflict)) {
      changed.insert(id);
    }
  }
}

Status confirm_hardware(Snapshot& fleet, const std::string& id, Time now,
                        std::set<std::string>& changed) {
  Node& node = fleet.nodes.at(id);
  const Condition* asked = find_condition(node.status, condition::kHardwareReplaced);
  if (!asked) {
    return fail(Code::kConflict, "nothing_to_confirm",
                fmt::format("nothing says that the hardware of {} was replaced", node.name),
                fmt::format("`clusterctl node check {}` looks at it", node.name));
  }
  const Identity known = known_identity(node);
  Identity seen{"", "", node.spec.ssh.host_key, {}};
  if (node.status.hardware) seen = identity_of(*node.status.hardware, node.spec.ssh.host_key);
  // Only a monitor has reported it so far: what it is comes with the next look.
  if (compare(known, seen).likeness == Likeness::kSame) seen = {"", "", node.spec.ssh.host_key, {}};
  node.status.identity = std::move(seen);
  if (is_commissioned(node)) {
    set_condition(node, condition::kNeedsVerification,
                  fmt::format("its hardware was replaced: {}", look(node)), "", now);
  }
  clear_condition(node, condition::kHardwareReplaced);
  if (stranger_there(node)) node.status.elsewhere.reset();  // it belongs here now
  changed.insert(id);
  return {};
}

void note_move(Node& node, const std::string& from, Time now) {
  node.status.elsewhere.reset();
  if (!is_commissioned(node)) return;
  set_condition(node, condition::kNeedsVerification,
                fmt::format("its address was {} and is {}; members may have recorded the old one: "
                            "`clusterctl node verify {}`, then `clusterctl node update {}`",
                            from, node.spec.addr, node.name, node.name),
                "", now);
}

Status rename_node(Snapshot& fleet, const std::string& id, const std::string& name,
                   std::set<std::string>& changed) {
  if (auto ok = check_name(name); !ok) return ok;
  Node& node = fleet.nodes.at(id);
  if (node.name == name) return {};
  if (is_commissioned(node)) {
    return fail(
        Code::kConflict, "commissioned",
        fmt::format("{} is {}: its name is part of the cluster", node.name,
                    word(node.status.lifecycle)),
        fmt::format("decommission it, rename it, commission it again; or keep {}", node.name));
  }
  if (auto ok = check_unique(fleet, name, "", id); !ok) return ok;
  node.name = name;
  ++node.generation;
  ++node.resource_version;
  changed.insert(id);
  return {};
}

std::string conflict_hint(const Node& node) {
  if (stranger_there(node)) {
    return fmt::format(
        "`clusterctl node check {0}` sees which machine is there; when it is its own, "
        "`clusterctl node move {0} {1}` says so as well",
        node.name, node.spec.addr);
  }
  if (const auto& other = node.status.elsewhere) {
    return fmt::format(
        "`clusterctl node move {0} {1}` or `clusterctl node move {0} {2}` says where "
        "it is",
        node.name, node.spec.addr, other->addr);
  }
  return fmt::format(
      "remove or power off the one that does not belong here, then `clusterctl node check {}`",
      node.name);
}

Problem no_manager_to_ask(const std::vector<const Node*>& managers, std::string silent) {
  std::vector<std::string> doubtful;
  const Node* first = nullptr;
  for (const Node* node : managers) {
    if (node->status.presence == Presence::kDisappeared ||
        !has_condition(node->status, condition::kIdentityConflict))
      continue;
    if (!first) first = node;
    doubtful.push_back(node->name);
  }
  if (first) {
    return {"no_reachable_manager",
            fmt::format("no run goes through a manager whose identity is in doubt "
                        "(IdentityConflict: {}), and no other one answers",
                        join(doubtful, ", ")),
            conflict_hint(*first), ""};
  }
  return {"no_reachable_manager", std::move(silent),
          managers.empty() ? "`clusterctl status` shows the members"
                           : fmt::format("bring {0} back, then `clusterctl node verify {0}`",
                                         managers.front()->name),
          ""};
}

std::optional<Problem> identity_block(const Node& node, std::string_view kind, bool powered_off) {
  constexpr std::array<std::string_view, 3> kLooking{"check", "verify", "observe"};
  if (powered_off || std::find(kLooking.begin(), kLooking.end(), kind) != kLooking.end())
    return std::nullopt;
  if (const Condition* c = find_condition(node.status, condition::kIdentityConflict)) {
    return Problem{"identity_conflict", fmt::format("{}: {}", node.name, c->reason),
                   conflict_hint(node), node.name};
  }
  const Condition* c = find_condition(node.status, condition::kHardwareReplaced);
  if (!c || kind == "decommission") return std::nullopt;
  return Problem{"hardware_replaced", fmt::format("{}: {}", node.name, c->reason),
                 fmt::format("`clusterctl node confirm-hardware {}`, then `clusterctl node verify "
                             "{}`",
                             node.name, node.name),
                 node.name};
}

}  // namespace clusterctl::fleet
