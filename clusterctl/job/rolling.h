// Rolling work, batch by batch: what has to hold before a batch begins, and what becomes of its
// nodes when it is over. Pure; any thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "fleet/snapshot.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

// The first stage of its batch, and nothing of it has begun.
bool opens_batch(const Job& job, const StageStatus& stage);

// Only looks at a batch that has converged, to give it back to service: a cancel that is not "at
// once" lets it, because that is the shortest way to a true state.
bool completes_batch(const Job& job, const StageStatus& stage);

// Why the batch that `stage` opens must not begin: so many nodes have failed, or the budget of
// workers that may be down is spent. Where only a part of the batch fits, the rest becomes a batch
// of its own after it. Changes `job.stages`.
struct Stop {
  std::string reason, error, hint;
};
// `waiting`: Host::waiting_drains().
std::optional<Stop> pass_gate(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                              const catalog::Catalog& catalog,
                              const std::set<std::string>& waiting);

// The same question about the nodes that `proposal` takes out of service, asked in the commit that
// does so: kConflict "budget".
Status check_room(const Proposal& proposal, const fleet::Snapshot& fleet,
                  const catalog::Catalog& catalog, const std::set<std::string>& waiting);

// Nodes that the start of `stage` takes into Maintenance, all of its batch where the budget is
// asked about them; marks them as begun.
std::vector<NodeChange> begin_nodes(Job& job, const StageStatus& stage,
                                    const fleet::Snapshot& fleet, Time now);

// Nodes whose batch is over and went well: back in service, as the verify stage saw them.
std::vector<NodeChange> finish_batches(Job& job, const fleet::Snapshot& fleet,
                                       const catalog::Catalog& catalog);

// "3 done, 1 failed, 2 untouched"
std::string tally(const Job& job);

}  // namespace clusterctl::job
