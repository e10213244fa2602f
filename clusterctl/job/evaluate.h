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
  std::string code = "";  // its word in hints.yml, or the code of the check's finding
};

struct StageOutcome {
  StageState state = StageState::kSucceeded;
  std::vector<Failure> failures;         // per target
  std::vector<Problem> problems;         // findings of `check`, with node names
  std::vector<NodeChange> observations;  // facts, presence: true whatever became of the stage
  std::string error;                     // about the run as a whole, when no target explains it
  std::string code, hint;                // of that error
};

// `output`: the end of the run's output, for runs that broke off. `hints` may be null.
StageOutcome evaluate(const StageStatus& stage, const fleet::Snapshot& fleet,
                      const ansible::RunResult& result, const run::RunState& run,
                      const std::string& output, Time now, const ansible::Hints* hints = nullptr);

}  // namespace clusterctl::job
