// Conditions that nobody sets and nobody clears: they follow from the fleet as it is. Derived in
// the commit that changes what they follow from.
#include <fmt/format.h>

#include "controller/controller.h"
#include "fleet/operation.h"
#include "fleet/words.h"
#include "plan/drift.h"
#include "plan/pending.h"

namespace clusterctl::controller {
namespace {

using Wanted = std::optional<std::string>;  // the reason of a condition, if it holds

// What conditions may follow from is the same in both records.
bool same_ground(const fleet::Node& a, const fleet::Node& b) {
  if (a.spec != b.spec || a.status.lifecycle != b.status.lifecycle ||
      a.status.applied != b.status.applied || a.status.presence != b.status.presence ||
      a.status.conditions != b.status.conditions ||
      a.status.services.size() != b.status.services.size())
    return false;
  for (const auto& [name, s] : a.status.services) {
    const auto it = b.status.services.find(name);
    if (it == b.status.services.end() || it->second.healthy != s.healthy ||
        it->second.members != s.members)
      return false;
  }
  return true;
}

bool changes_ground(const State& before, const Change& change) {
  if (change.globals || change.cluster || !change.secrets.empty() || !change.removed_nodes.empty())
    return true;
  for (const auto& [id, node] : change.nodes) {
    const auto was = before.fleet->nodes.find(id);
    if (was == before.fleet->nodes.end() || !same_ground(was->second, node)) return true;
  }
  for (const auto& [id, job] : change.jobs) {
    if (!before.jobs.count(id) || job::is_final(job.state)) return true;
  }
  return false;
}

// Nodes that some job works on or waits for.
std::set<std::string> nodes_with_jobs(const State& state) {
  std::set<std::string> out;
  for (const auto& [id, job] : state.jobs) {
    if (job::is_final(job->state)) continue;
    for (const job::NodeOutcome& n : job->nodes) out.insert(n.node);
  }
  return out;
}

// Nodes of jobs that come or end with this change, and those that it changes itself.
std::set<std::string> touched_nodes(const Change& change) {
  std::set<std::string> out;
  for (const auto& [id, node] : change.nodes) out.insert(id);
  for (const auto& [id, job] : change.jobs) {
    for (const job::NodeOutcome& n : job.nodes) out.insert(n.node);
  }
  return out;
}

void settle(Change& change, const fleet::Node& now, std::string_view type, const Wanted& reason,
            Time time) {
  const fleet::Condition* old = fleet::find_condition(now.status, type);
  if (reason ? old && old->reason == *reason : !old) return;
  const auto stored = change.nodes.find(now.id);
  fleet::Node node = stored == change.nodes.end() ? now : stored->second;
  Event event;
  event.type = "node.condition";
  event.node = node.name;
  if (reason) {
    fleet::set_condition(node, type, *reason, "", time);
    event.message = fmt::format("{}: {}", type, *reason);
  } else {
    fleet::clear_condition(node, type);
    event.message = fmt::format("{} cleared", type);
  }
  change.nodes[node.id] = std::move(node);
  change.events.push_back(std::move(event));
}

}  // namespace

std::optional<std::string> Controller::derive(Change& change) const {
  const auto before = state();
  if (!derive_all_ && !changes_ground(*before, change)) return std::nullopt;
  const State after = apply(*before, change);
  const fleet::Snapshot& fleet = *after.fleet;
  std::string managers = plan::pending_key(fleet, deps_.catalog);
  const bool all = derive_all_ || change.globals || !change.secrets.empty();
  const bool all_pending =
      all || change.cluster || !change.removed_nodes.empty() || managers != managers_seen_;
  const auto touched = touched_nodes(change);
  const auto busy = nodes_with_jobs(after);
  const Time now = deps_.clock.now();
  for (const auto& [id, node] : fleet.nodes) {
    const bool this_one = touched.count(id) != 0;
    if (all || this_one) {
      const auto items = plan::drift_of(fleet, deps_.catalog, node);
      settle(change, node, fleet::condition::kDrifted,
             items.empty() ? Wanted() : Wanted(plan::drift_reason(items)), now);
    }
    if (all_pending || this_one) {
      const bool waits = !busy.count(id);
      settle(change, node, fleet::condition::kPending,
             waits ? plan::why_pending(fleet, deps_.catalog, node) : Wanted(), now);
    }
  }
  return managers;
}

}  // namespace clusterctl::controller
