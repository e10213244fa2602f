// What the placement rules are told of a request: of each node that would be put into service, and
// of the cluster it would join. Belongs to the planning call.
#pragma once

#include <vector>

#include "fleet/placement.h"
#include "plan/context.h"

namespace clusterctl::plan {

// What only the catalog knows of `c`: needs, ports, memory, versions. Its services, role and
// variables are there already.
void add_catalog_facts(const catalog::Catalog& catalog, fleet::Candidate& c);

// `staying`: managers outside the request, `peer` one of them that answers or nullptr.
fleet::Placement placement_for(const Context& context,
                               const std::vector<fleet::Candidate>& candidates,
                               const NodeList& staying, const Node* peer);

}  // namespace clusterctl::plan
