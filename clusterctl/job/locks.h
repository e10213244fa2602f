// Which jobs may run side by side. Locks are derived from the jobs that have not ended, never
// stored: exclusive on targets, shared on the managers a run delegates to. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"

namespace clusterctl::job {

struct Conflict {
  std::string job;   // the holder
  std::string node;  // id of the node both want; empty: both disrupt managers
};

// What `waiting` has to wait for because of `holder`, if anything.
std::optional<Conflict> conflict(const Job& holder, const Job& waiting);

// True for kinds that change or restart cluster members and of which only one may touch managers at
// a time.
bool disrupts_managers(const Job& job);

// The first of `jobs` (oldest first) that stands in the way of `jobs[index]`: running ones, and
// waiting ones that came earlier (fairness).
std::optional<Conflict> blocked_by(const std::vector<const Job*>& jobs, size_t index);

}  // namespace clusterctl::job
