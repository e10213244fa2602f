// The time limits that a job may have (`timeout`, `silence_timeout`; off unless asked for). Pure:
// the time is an argument. Any thread.
#pragma once

#include <optional>

#include "base/clock.h"
#include "job/job.h"

namespace clusterctl::job {

// Between the request to end at the next task and the end at once.
constexpr std::chrono::seconds kOverrunGrace{30};

// The stage that a limit can end: begun, not ended, not closing. nullptr: none.
const StageStatus* limited_stage(const Job& job);

// The limit that a running job has passed by now, if any. `last_output`: when its present run last
// gave a sign of life. Pauses do not count. Stages that put nodes in order are never ended for it.
std::optional<Overrun> overrun(const Job& job, Time now, std::optional<Time> last_output);

}  // namespace clusterctl::job
