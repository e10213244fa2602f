// The machine of the controller, recognised by what it says of itself: its address may be one that
// the controller does not know as its own (a second name, a translated address). Pure; any thread.
#pragma once

#include "fleet/snapshot.h"
#include "job/evaluate.h"
#include "job/job.h"

namespace clusterctl::job {

// After `check`, the last stage that changes nothing: nodes that turned out to be the controller's
// own machine have failed, unless that was meant.
void refuse_own_host(const Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                     StageOutcome& outcome);

}  // namespace clusterctl::job
