// A plan (docs/rest.md, Plan) for people. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace clusterctl::cli {

// Order, services, quorum before and after, warnings.
std::string plan_text(const Json& plan);
// Names of all nodes that the plan works on, in the order of work.
std::vector<std::string> plan_nodes(const Json& plan);

}  // namespace clusterctl::cli
