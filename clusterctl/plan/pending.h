// Why a node that is wanted in service cannot be commissioned yet. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "catalog/catalog.h"
#include "fleet/snapshot.h"

namespace clusterctl::plan {

// An accepted node in service that is decided (it has a host group) and not commissioned.
bool waits_for_service(const fleet::Node& node);

// One line: what the rules say to commissioning this node alone, on what is true now. nullopt: it
// can be commissioned, or does not wait for it.
std::optional<std::string> why_pending(const fleet::Snapshot& snapshot,
                                       const catalog::Catalog& catalog, const fleet::Node& node);

// What of the fleet that answer depends on besides the node itself, as one text: its managers, as
// last seen. While it stays the same, so do the answers for nodes that were not changed. Globals,
// the cluster's settings and removed nodes are not in it.
std::string pending_key(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog);

}  // namespace clusterctl::plan
