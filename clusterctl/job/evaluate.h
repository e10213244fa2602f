// What a finished run says about each of its targets. Pure: the run's own word (exit code, events)
// in, outcome out. A playbook's success is necessary, never sufficient: exit 0 with lost events,
// with a target missing, or without the facts a stage asks for is a failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ansible/events.h"
#include "base/clock.h"
#include "job/host.h"
#include "job/job.h"
#include "run/runs.h"

namespace clusterctl::job {

struct Failure {
  std::string node;  // id
  std::string service, task, message;
  std::string hint = "";  // what to do about a known cause
};

struct StageOutcome {
  StageState state = StageState::kSucceeded;
  std::vector<Failure> failures;         // per target
  std::vector<Problem> problems;         // findings of `check`, with node names
  std::vector<NodeChange> observations;  // facts, presence: true whatever became of the stage
  std::string error;                     // about the run as a whole, when no target explains it
};

// `last_output`: the last non-empty line of the run's output, for runs that ended before any event.
StageOutcome evaluate(const StageStatus& stage, const fleet::Snapshot& fleet,
                      const ansible::RunResult& result, const run::RunState& run,
                      const std::string& last_output, Time now);

}  // namespace clusterctl::job
