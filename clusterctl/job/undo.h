// The undo ledger: what a job changed of its nodes' state in the scheduler, and how it comes back.
// An entry is durable before the run that makes the change starts, so that whatever happens to the
// run, the daemon or the machine, the next stepper knows what may have been changed and replays the
// inverse as a closing stage. Pure; any thread.
#pragma once

#include <optional>

#include "catalog/catalog.h"
#include "fleet/snapshot.h"
#include "job/evaluate.h"
#include "job/job.h"

namespace clusterctl::job {

// Before `stage` starts: one entry for each of its targets whose state it changes.
void record_changes(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet);

// After `stage`: what it made is done, what it put back is undone.
void settle_changes(Job& job, const StageStatus& stage, const StageOutcome& outcome);

// The closing stage that puts back what is open on nodes that did not reach the job's aim; nullopt
// when nothing is open, the evidence is kept, or nobody is left to do it through. After a
// broken-off try it is given again, after a failed one through another manager.
std::optional<StageStatus> undo_stage(const Job& job, const fleet::Snapshot& fleet,
                                      const catalog::Catalog& catalog);

// When the job ends: what is still open was the aim, is kept, or could not be put back.
void close_ledger(Job& job);

// What the scheduler has for this node while `stage` runs, as the playbooks have to know it: else
// converging a drained node would put it back to work.
fleet::Availability availability_during(const Job& job, const StageStatus& stage,
                                        const fleet::Node& node);

}  // namespace clusterctl::job
