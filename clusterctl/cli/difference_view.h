// A plan of a document (docs/rest.md, FleetPlan) for people. Pure; any thread.
#pragma once

#include <string>

#include "base/json.h"

namespace clusterctl::cli {

// What is added, changed and removed, what the file does not have, and every step. At most
// `max_nodes` nodes are told; 0: all.
std::string difference_text(const Json& plan, size_t max_nodes = 40);

}  // namespace clusterctl::cli
