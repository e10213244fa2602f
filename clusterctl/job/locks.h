// Which jobs may run side by side. Locks are derived from the jobs that have not ended, never
// stored: exclusive on targets, shared on the managers a run delegates to and on the targets of
// work that only looks. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"

namespace clusterctl::job {

// What a job waits for.
struct Conflict {
  std::string job;     // the holder; empty: no job in particular
  std::string node;    // id of the node that both want; empty: none
  std::string reason;  // "node"; "managers": both disrupt managers; "parallel_runs": all places
                       // taken; "plan": it is the step after that job
};

// Work that only looks.
bool read_only(const Job& job);

// True for kinds that change or restart cluster members and of which only one may touch managers at
// a time.
bool disrupts_managers(const Job& job);

// The removal of machines that are off for good. It contacts nothing but survivors, so it waits
// only for work that goes on at the same nodes or on managers: not for jobs that are queued, not
// for jobs that merely know the dead machine as a manager, and not for a free place.
bool urgent(const Job& job);

// For each of `jobs` (all that have not ended, oldest first) what stands in its way: jobs that run
// or are paused, and waiting ones that came earlier (fairness). Nothing for those that have begun.
std::vector<std::optional<Conflict>> conflicts(const std::vector<const Job*>& jobs);

}  // namespace clusterctl::job
