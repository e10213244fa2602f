// The placement rules about the controller itself: the machine it runs on, and the variables by
// which operators name the first manager. Pure, any thread.
#pragma once

#include "fleet/placement.h"

namespace clusterctl::fleet {

// True when the node's address, or its machine id once that is known, is the controller's own.
bool is_own_host(const OwnHost& own, const Node& node);

void check_own_host(const Placement& placement, Findings& out);
void check_first_manager(const Placement& placement, Findings& out);

}  // namespace clusterctl::fleet
