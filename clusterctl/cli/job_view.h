// A job for people: what it did, stage by stage and node by node, what it does now, why it failed.
// Answers of the daemon (docs/rest.md: Job, Timeline) in, text out. Pure; any thread.
#pragma once

#include <string>

#include "base/json.h"

namespace clusterctl::cli {

// `timeline` may be null, when the daemon has none. All rows of it when `wide`.
std::string job_details(const Json& job, const Json& timeline, bool wide);

// One row a node; a reason that several nodes share is told once. Then the hints, once each, and
// what the check found.
std::string outcome_table(const Json& job);

}  // namespace clusterctl::cli
