// GET /metrics: how the fleet and the daemon are, as numbers for Prometheus. Read from the
// published state; no lock is held while the text is made, and there are no labels by node or job,
// so that it stays small however large the fleet is. Any thread.
#pragma once

#include <string>

#include "api/meters.h"
#include "api/resources.h"

namespace clusterctl::api {

std::string render_metrics(const controller::Controller& controller, const About& about,
                           const notify::Notifier* notifier, const Meters& meters);

}  // namespace clusterctl::api
