// What a stage's outcome and the end of a job mean for its nodes. Pure; any thread. The lifecycle
// of every kind of work is one table in finish.cpp; every busy state has a way out there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "fleet/snapshot.h"
#include "job/evaluate.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

// The lifecycle event that the start of this kind of work is for its targets; nullopt for work
// that leaves it alone, or takes it batch by batch (rolling.h).
std::optional<fleet::Event> start_event(std::string_view kind);

// The lifecycle event with which this kind of work begins on a node, whenever that is.
std::optional<fleet::Event> begin_event(std::string_view kind);

// Records a stage's failures in the job's per-node outcomes. `touched` tells which targets were
// begun.
void record_outcome(Job& job, const StageStatus& stage, const StageOutcome& outcome,
                    const std::vector<std::string>& touched);

// True when the job must not go on to its next planned stage; sets reason and error. Other failures
// concern their own node only.
bool stops_job(Job& job, const StageStatus& stage, const StageOutcome& outcome);

// What becomes of a node for which this kind of work has reached its aim.
NodeChange node_done(const Job& job, const NodeOutcome& n, const fleet::Snapshot& fleet,
                     const catalog::Catalog& catalog);

// True for kinds whose acceptance changes what is wanted of their nodes.
bool changes_spec(std::string_view kind);

// Stages to add after the last planned one: cleanup of failed nodes, then an observation when
// members were removed.
std::vector<StageStatus> closing_stages(const Job& job, const fleet::Snapshot& fleet);

// Sets the job's final state and proposes what becomes of its nodes.
std::vector<NodeChange> finish_job(Job& job, const fleet::Snapshot& fleet,
                                   const catalog::Catalog& catalog, Time now);

}  // namespace clusterctl::job
