// The placement rules of registry nodes (capabilities dtr-*) and of the variables that say the same
// in another way. A file of its own because the rules belong together. Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/placement.h"

namespace clusterctl::fleet {

bool is_registry(const std::vector<std::string>& capabilities);  // any dtr-* capability

// What a node carries when `given` was said for it (empty: nothing) and its variables speak as
// well: `dtr_bootstrap_node_name` with its name means dtr-controller, `dtr_replica: true`
// dtr-replica. A given dtr-* capability is not changed; whether it contradicts the variables is a
// rule below. `own_vars`: those of the node and the request, without globals. The result replaces
// `given`.
std::vector<std::string> with_variable_forms(const Node& node, std::vector<std::string> given,
                                             const std::vector<std::string>& group_default,
                                             const Json& vars, const Json& own_vars);

void check_registry(const Placement& placement, Findings& out);            // who may be one
void check_registry_cluster(const Placement& placement, Findings& out);    // what must be there
void check_registry_storage(const Placement& placement, Findings& out);    // where images go
void check_registry_variables(const Placement& placement, Findings& out);  // contradictions
void check_registry_count(const Placement& placement, Findings& out);      // warnings

}  // namespace clusterctl::fleet
