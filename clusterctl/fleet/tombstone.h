// What is kept of a node that was removed from the inventory although it still owes a cleanup: by
// this it is recognised when it comes back under another record. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

// nullopt: the node owes nothing.
std::optional<Tombstone> tombstone_of(const Node& node, Time now);

// The tombstone of the installation on this node, or nullptr. What is left lies on its disk, so the
// machine id decides when both are known: a machine that was installed again owes nothing. Without
// it the system's UUID, then the name and the address.
const Tombstone* find_tombstone(const Snapshot& snapshot, const Node& node);

// Marks a node that is not commissioned and has a tombstone. True when that was news.
bool mark_returned(const Snapshot& snapshot, Node& node, Time now);

Json to_json(const Tombstone& tombstone);
Tombstone tombstone_from(const Json& record);

}  // namespace clusterctl::fleet
