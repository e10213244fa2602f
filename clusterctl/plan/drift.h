// What a node was converged with, and how that differs from what it would be given now. Pure; any
// thread.
//
// Only what the operator set counts, and the catalog's entries of the node's services: nothing
// derived from other nodes. A variable whose name begins with the name of a service (`etcd_…`)
// concerns only nodes that carry this service. Values of variables are known by digests, those of
// secrets by the digests of the snapshot.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "fleet/snapshot.h"

namespace clusterctl::plan {

// Globals, host group, node, and the versions through the catalog's variables; secrets as
// references.
Json operator_vars(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                   const fleet::Node& node, std::string_view host_group);

// The service whose own variable this is: the longest name that it begins with; "" when there is
// none.
std::string owner_of(const catalog::Catalog& catalog, const std::string& variable);

// Digest of each of these values, by name.
std::map<std::string, std::string> variable_digests(const fleet::Snapshot& snapshot,
                                                    const catalog::Catalog& catalog,
                                                    const fleet::Node& node,
                                                    std::string_view host_group);
// Of what an entry of the catalog says about a node that carries the service.
std::string entry_digest(const catalog::Service& service);

// One digest over the variables, their secret values too, and the catalog version. Not for eyes.
std::string config_fingerprint(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                               const fleet::Node& node, std::string_view host_group);

// Every difference between what was applied and what the node would be given now, in words
// ("variable env", "service ucarp is not there yet"), sorted by kind and name; never a value. Empty
// for nodes that are not in service.
std::vector<std::string> drift_of(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                                  const fleet::Node& node);

// The same as one line for the condition Drifted: the first few, and how many more.
std::string drift_reason(const std::vector<std::string>& items);

}  // namespace clusterctl::plan
