// Nodes of a running job whose identity came into doubt: by what its own check has seen, or by what
// a monitor has reported meanwhile. Pure, any thread.
#pragma once

#include <optional>

#include "fleet/snapshot.h"
#include "job/job.h"

namespace clusterctl::job {

// Before a stage that changes something: marks those of its nodes as failed, so that it leaves them
// out. The reason why the whole job has to stop, when a manager of a commission is among them.
std::optional<Problem> leave_out_doubtful(Job& job, const StageStatus& stage,
                                          const fleet::Snapshot& fleet);

}  // namespace clusterctl::job
