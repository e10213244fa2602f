#include "job/continue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::job {
namespace {

bool wanted(const NodeOutcome& n, const Selection& what) {
  if (what.resume) return n.state != OutcomeState::kSucceeded;
  const bool untouched = n.state == OutcomeState::kUntouched || n.state == OutcomeState::kPending;
  const bool failed = n.state == OutcomeState::kFailed || n.state == OutcomeState::kCancelled;
  return (what.failed && failed) || (what.untouched && untouched);
}

// What the run of a stage left behind it for this node. A run that broke off says nothing.
bool has_passed(const StageStatus& stage, const NodeOutcome& node) {
  if (stage.state != StageState::kSucceeded && stage.state != StageState::kFailed) return false;
  return contains(stage.nodes, node.node) && node.stage != stage.def.name;
}

// A manager that has the stage behind it is a member by now: the others join through it.
void go_along(const Job& job, plan::Stage& stage, const std::string& node) {
  const auto role = job.roles.find(node);
  if (role == job.roles.end() || role->second != fleet::Role::kManager) return;
  stage.peers.push_back(node);
  const NodeOutcome* outcome = job.outcome(node);
  if (stage.vars.peer.empty() && outcome) stage.vars.peer = outcome->name;
  stage.vars.initiator.clear();
}

}  // namespace

Status check_continuable(const Job& job) {
  if (!is_final(job.state)) {
    return fail(Code::kConflict, "not_ended",
                fmt::format("job {} has not ended: it is {}", job.id, to_word(job.state)),
                fmt::format("clusterctl job wait {0}, or clusterctl job cancel {0}", job.id));
  }
  if (job.state == State::kSucceeded) {
    return fail(Code::kConflict, "succeeded",
                fmt::format("job {} succeeded: nothing is left to do", job.id));
  }
  if (!job.continuation.continued_by.empty()) {
    return fail(
        Code::kConflict, "continued",
        fmt::format("job {} was continued by job {}", job.id, job.continuation.continued_by),
        fmt::format("clusterctl job inspect {}", job.continuation.continued_by));
  }
  if (job.continuation.secrets_gone) {
    return fail(Code::kConflict, "secrets_gone",
                fmt::format("the secret variables of job {} are no longer kept", job.id),
                "give the command again, with them");
  }
  return {};
}

bool continuable(const Job& job) {
  return check_continuable(job).has_value();
}

std::optional<Time> continuable_until(const Job& job) {
  if (!continuable(job) || !job.continuation.keeps_secrets || !job.ended) return std::nullopt;
  return *job.ended + kSecretsKept;
}

std::vector<const NodeOutcome*> nodes_to_continue(const Job& job, const Selection& what) {
  std::vector<const NodeOutcome*> out;
  for (const NodeOutcome& n : job.nodes) {
    if (wanted(n, what)) out.push_back(&n);
  }
  return out;
}

std::set<std::string> passed_stages(const Job& job, const NodeOutcome& node) {
  if (!node.cleanup.empty() && node.cleanup != "kept") return {};
  // Work in batches puts a node's availability back when it breaks off, and converging again
  // changes nothing that is right: a node that was not done begins anew.
  const auto begins_anew = [](const StageStatus& s) {
    return s.def.batch > 0 || !s.def.availability.empty();
  };
  if (std::any_of(job.stages.begin(), job.stages.end(), begins_anew)) return {};
  std::set<std::string> out;
  if (const auto before = job.continuation.passed.find(node.node);
      before != job.continuation.passed.end()) {
    out.insert(before->second.begin(), before->second.end());
  }
  bool owed = false;
  for (const StageStatus& stage : job.stages) {
    if (stage.closing) continue;
    if (has_passed(stage, node)) {
      out.insert(stage.def.name);
    } else if (stage.def.name == "cleanup" && contains(stage.def.nodes, node.node)) {
      owed = true;
    }
  }
  // What a commission left half-done is built upon, not cleaned away, unless the job itself had to
  // clean first and did not come to its end with that.
  if (job.kind == "commission" && node.touched && !owed) out.insert("cleanup");
  return out;
}

void leave_out_passed(Job& job) {
  for (StageStatus& stage : job.stages) {
    if (stage.def.name == "observe") continue;
    std::vector<std::string> left;
    for (const std::string& node : stage.def.nodes) {
      const auto passed = job.continuation.passed.find(node);
      const bool out =
          passed != job.continuation.passed.end() && contains(passed->second, stage.def.name);
      if (!out) left.push_back(node);
      if (out) go_along(job, stage.def, node);
    }
    if (left.empty() && !stage.def.nodes.empty()) stage.state = StageState::kSkipped;
    stage.def.nodes = std::move(left);
  }
}

}  // namespace clusterctl::job
