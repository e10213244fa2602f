// Applies what a job proposes to a node record, by the pure operations of the fleet room. Any
// thread.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/node.h"
#include "job/host.h"

namespace clusterctl::controller {

// kStale unless the record is at one of the versions its caller accepts.
Status check_version(const fleet::Node& node, const std::optional<std::vector<int64_t>>& accepted);

Status apply(fleet::Node& node, const job::NodeChange& change, Time now);

}  // namespace clusterctl::controller
