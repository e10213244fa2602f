// The steps of a plan: each begins when the one before it has succeeded, and none does after one
// that has not.
#include <fmt/format.h>

#include "base/log.h"
#include "controller/controller.h"
#include "fleet/words.h"

namespace clusterctl::controller {

bool Controller::end_broken_chain() {
  const auto now = state();
  for (const auto& [id, queued] : now->jobs) {
    if (queued->state != job::State::kQueued || queued->chain.after.empty()) continue;
    const auto before = now->jobs.find(queued->chain.after);
    if (before == now->jobs.end() || !job::is_final(before->second->state) ||
        before->second->state == job::State::kSucceeded)
      continue;
    job::Job job = *queued;
    Change change;
    job.reason = "step_failed";
    job.error = fmt::format("not begun: the step before it, job {} ({}), ended {}", before->first,
                            before->second->kind, to_word(before->second->state));
    job.hint = "repair it, then plan and apply again: what is done is left out";
    end_unstarted(job, job::State::kCancelled, change);
    ++job.resource_version;
    change.jobs[id] = std::move(job);
    if (auto done = commit(std::move(change)); !done) {
      log::error("job {} cannot be ended: {}", id, done.error().line());
      start_failed_ = true;
      return false;
    }
    return true;
  }
  return false;
}

void Controller::remove_done(const State& now, const job::Job& job, Change& change) {
  for (const job::NodeOutcome& n : job.nodes) {
    const auto it = now.fleet->nodes.find(n.node);
    if (n.state != job::OutcomeState::kSucceeded || it == now.fleet->nodes.end()) continue;
    const auto changed = change.nodes.find(n.node);
    if (changed == change.nodes.end() || is_commissioned(changed->second)) continue;
    const fleet::Node node = changed->second;
    remove_record(now, node, job.id, change);
  }
  if (change.removed_nodes.empty()) return;
  change.by = job.initiator;
  change.what = job.title;
}

}  // namespace clusterctl::controller
