// The cluster's drift policy `auto`: work that is begun without being asked for, to bring nodes to
// what is wanted. One job for a cause: what it could not change it leaves to people.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "controller/controller.h"
#include "fleet/conditions.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

constexpr std::string_view kInitiator = "drift-policy";

// Somebody has to look at such a node first.
bool needs_people(const fleet::Node& node) {
  constexpr std::array kMarks{fleet::condition::kFailed,
                              fleet::condition::kInterrupted,
                              fleet::condition::kDirty,
                              fleet::condition::kNotCleaned,
                              fleet::condition::kIdentityConflict,
                              fleet::condition::kHardwareReplaced};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return fleet::has_condition(node.status, mark);
  });
}

// A job that waits, works, or was begun for this very cause.
bool tried(const State& state, const fleet::Node& node, const fleet::Condition& cause) {
  return std::any_of(state.jobs.begin(), state.jobs.end(), [&](const auto& entry) {
    const job::Job& job = *entry.second;
    if (!job.outcome(node.id)) return false;
    return !job::is_final(job.state) || (job.initiator == kInitiator && job.created >= cause.since);
  });
}

std::vector<std::string> due(const State& state, std::string_view type) {
  std::vector<std::string> out;
  for (const auto& [id, node] : state.fleet->nodes) {
    const fleet::Condition* cause = fleet::find_condition(node.status, type);
    const bool drifted = fleet::has_condition(node.status, fleet::condition::kDrifted);
    if (!cause || !cause->job.empty()) continue;  // a job that failed has said so
    if (type == fleet::condition::kNeedsVerification && drifted) continue;  // an update verifies
    if (node.status.lifecycle != fleet::Lifecycle::kAllocated ||
        node.status.presence == fleet::Presence::kDisappeared || needs_people(node))
      continue;
    if (!tried(state, node, *cause)) out.push_back(node.name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool somebody_paused(const State& state) {
  return std::any_of(state.jobs.begin(), state.jobs.end(), [](const auto& entry) {
    const job::Job& job = *entry.second;
    return job.state == job::State::kPaused || (job.pause.requested && !job::is_final(job.state));
  });
}

}  // namespace

void Controller::follow_drift_policy() {
  const auto now = state();
  if (now->fleet->cluster.drift_policy != "auto" || now->fleet->isolated_since ||
      somebody_paused(*now))
    return;
  const std::array<std::pair<std::string, std::string_view>, 2> kWork{
      {{"update", fleet::condition::kDrifted}, {"verify", fleet::condition::kNeedsVerification}}};
  std::string refused;
  for (const auto& [kind, condition] : kWork) {
    plan::Request request;
    request.kind = kind;
    request.nodes = due(*now, condition);
    if (request.nodes.empty()) continue;
    auto plan = plan::make_plan(*now->fleet, deps_.catalog, request);
    if (!plan) {
      refused = fmt::format("{} of {}: {}", kind, request.nodes.front(), plan.error().line());
      // What stands against the managers need not hold up the workers.
      std::erase_if(request.nodes, [&](const std::string& name) {
        return plan::role_of(deps_.catalog, *now->fleet->by_name(name)) == fleet::Role::kManager;
      });
      if (request.nodes.empty()) continue;
      plan = plan::make_plan(*now->fleet, deps_.catalog, request);
      if (!plan) continue;
    }
    const auto job =
        accept(plan::pinned(request, *plan, *now->fleet), *plan, Origin{std::string(kInitiator)});
    if (!job) refused = job.error().line();
  }
  if (!refused.empty() && refused != auto_refused_)
    log::warn("the drift policy begins no work: {}", refused);
  auto_refused_ = refused;
}

}  // namespace clusterctl::controller
