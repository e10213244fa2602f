// One host's variables as a node's spec. Internal to this room.
#pragma once

#include <string>
#include <string_view>

#include "inventory/sources.h"

namespace clusterctl::inventory {

bool valid_node_name(std::string_view name);
bool valid_address(std::string_view addr);

// `connection`: everything that applies to the host, for ansible_* and clusterctl_* names. `vars`:
// what becomes the node's own variables. Problems and notes go to `sources`.
Json host_spec(const std::string& name, const Json& connection, const Json& vars, Sources& sources);

// The variables of `vars` that stay Ansible variables: connection settings and names of the
// controller are taken out. Complains about names and values that cannot be kept; `what` names the
// place, `node` the host or "".
Json plain_vars(const Json& vars, const std::string& what, const std::string& node,
                Sources& sources);

}  // namespace clusterctl::inventory
