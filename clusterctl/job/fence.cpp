#include "job/fence.h"

#include <algorithm>
#include <set>

#include "job/causes.h"

namespace clusterctl::job {
namespace {

constexpr size_t kMaxFenceRuns = 100;

void add_broken_runs(const Job& job, std::set<std::string>& runs) {
  for (const StageStatus& s : job.stages) {
    if (s.state == StageState::kInterrupted || s.state == StageState::kCancelled)
      runs.insert(s.run);
  }
}

// Stages whose playbook does not begin with the fence on its targets (availability.yml has it on
// the manager that is asked).
bool without_fence(const plan::Stage& stage) {
  return stage.name == "observe" || stage.name == "show" || stage.name == "forget" ||
         !stage.availability.empty();
}

}  // namespace

std::vector<std::string> fence_runs(const Context& context, const Job& job,
                                    const StageStatus& stage) {
  std::set<std::string> runs;
  add_broken_runs(job, runs);
  if (const auto before = context.host.current(job.continuation.continues))
    add_broken_runs(*before, runs);
  const auto fleet = context.host.fleet();
  for (const std::string& id : stage.nodes) {
    const auto node = fleet->nodes.find(id);
    if (node == fleet->nodes.end()) continue;
    runs.insert(node->second.status.fence_runs.begin(), node->second.status.fence_runs.end());
  }
  runs.erase(stage.run);
  runs.erase("");
  std::vector<std::string> out(runs.rbegin(), runs.rend());  // newest first: ids sort by time
  if (out.size() > kMaxFenceRuns) out.resize(kMaxFenceRuns);
  return out;
}

void note_fences(const StageStatus& stage, bool complete, StageOutcome& outcome) {
  const bool broke_off = !complete || outcome.state == StageState::kInterrupted ||
                         outcome.state == StageState::kCancelled;
  for (NodeChange& change : outcome.observations) {
    const auto is_this = [&](const auto& item) { return item.node == change.id; };
    const bool target =
        std::find(stage.nodes.begin(), stage.nodes.end(), change.id) != stage.nodes.end();
    if (!target) continue;
    // A connection that was lost in the middle leaves the remote half of its task behind as well.
    const bool failed = std::any_of(outcome.failures.begin(), outcome.failures.end(), is_this);
    const bool refused = std::any_of(
        outcome.failures.begin(), outcome.failures.end(),
        [&](const auto& item) { return is_this(item) && answers_and_refuses(item.code); });
    const bool lost = change.presence == fleet::Presence::kDisappeared || refused;
    if (without_fence(stage.def)) {
      if (broke_off) change.needs_fence = stage.run;
    } else if (broke_off || lost) {
      change.needs_fence = stage.run;
    } else if (!failed) {
      change.fenced = stage.fences;
    }
  }
}

}  // namespace clusterctl::job
