#include "fleet/tombstone.h"

#include <fmt/format.h>

#include "fleet/conditions.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

// Both known: equal or not. Otherwise it says nothing.
std::optional<bool> same(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  return a == b;
}

bool is_of(const Tombstone& t, const Node& node) {
  static const Hardware kUnknown;
  const Hardware& h = node.status.hardware ? *node.status.hardware : kUnknown;
  for (const auto& found : {same(t.machine_id, h.machine_id), same(t.uuid, h.uuid)}) {
    if (found) return *found;
  }
  return t.name == node.name || canonical_addr(t.addr) == canonical_addr(node.spec.addr);
}

}  // namespace

std::optional<Tombstone> tombstone_of(const Node& node, Time now) {
  const Condition* owed = find_condition(node.status, condition::kNotCleaned);
  if (!owed) owed = find_condition(node.status, condition::kDirty);
  if (!owed) return std::nullopt;
  Tombstone t{node.id, node.name, node.spec.addr, "", "", owed->reason, now};
  if (node.status.hardware) {
    t.uuid = node.status.hardware->uuid;
    t.machine_id = node.status.hardware->machine_id;
  }
  return t;
}

const Tombstone* find_tombstone(const Snapshot& snapshot, const Node& node) {
  for (const auto& [id, t] : snapshot.tombstones) {
    if (is_of(t, node)) return &t;
  }
  return nullptr;
}

bool mark_returned(const Snapshot& snapshot, Node& node, Time now) {
  if (snapshot.tombstones.empty() || is_commissioned(node) ||
      has_condition(node.status, condition::kNotCleaned))
    return false;
  const Tombstone* t = find_tombstone(snapshot, node);
  if (!t) return false;
  return set_condition(
      node, condition::kNotCleaned,
      fmt::format("it was removed as {} ({}) without a cleanup: {}", t->name, t->addr, t->reason),
      "", now);
}

Json to_json(const Tombstone& t) {
  return {{"v", 1},
          {"id", t.id},
          {"name", t.name},
          {"addr", t.addr},
          {"uuid", t.uuid},
          {"machine_id", t.machine_id},
          {"reason", t.reason},
          {"since", t.since.time_since_epoch().count()}};
}

Tombstone tombstone_from(const Json& j) {
  const auto text = [&](const char* key) { return get_string(j, key).value_or(""); };
  return {text("id"),
          text("name"),
          text("addr"),
          text("uuid"),
          text("machine_id"),
          text("reason"),
          Time(std::chrono::milliseconds(get_int(j, "since").value_or(0)))};
}

}  // namespace clusterctl::fleet
