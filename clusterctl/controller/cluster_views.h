// Managers and services as the last observation saw them. Pure; any thread.
#pragma once

#include "catalog/catalog.h"
#include "controller/change.h"

namespace clusterctl::controller {

// {"scheduler", "observed", "managers": [...]}: who the scheduler itself counts as managers, and
// managers of the fleet that it does not know (docs/rest.md).
Json managers_view(const State& state, const catalog::Catalog& catalog);

// {"services": [...]}: on how many nodes, in which versions, healthy or why not, and where they
// are reached.
Json services_view(const State& state, const catalog::Catalog& catalog);

}  // namespace clusterctl::controller
