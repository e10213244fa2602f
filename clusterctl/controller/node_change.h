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

Status apply(fleet::Node& node, const job::NodeChange& change, Time now);

}  // namespace clusterctl::controller
