// The fence: before a run does anything on a node, it ends what broken runs left there (the remote
// half of a killed task goes on). A node's record names the runs that need one until a run that had
// the fence has ended well there. Any thread.
#pragma once

#include <string>
#include <vector>

#include "job/evaluate.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

// Runs whose processes may still be on the targets of this stage: those that the nodes' records
// name, and broken ones of this job and of the one it continues. Newest first.
std::vector<std::string> fence_runs(const Context& context, const Job& job,
                                    const StageStatus& stage);

// Notes on the observations of an ended stage which nodes need a fence for its run, and which had
// theirs. `complete`: the run came to its final statistics.
void note_fences(const StageStatus& stage, bool complete, StageOutcome& outcome);

}  // namespace clusterctl::job
