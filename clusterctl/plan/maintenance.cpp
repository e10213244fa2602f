// maintenance-enter: [observe] → [pause all] → batches of drain → [handover → observe].
// maintenance-exit: verify → [takeback] → return, which gives the availability back.
#include <fmt/format.h>

#include <algorithm>

#include "fleet/lifecycle.h"
#include "fleet/words.h"
#include "plan/stay.h"

namespace clusterctl::plan {

using fleet::Availability;
using fleet::Lifecycle;

Result<Plan> plan_maintenance_enter(const Context& context) {
  fleet::Problems problems;
  std::vector<Problem> warnings;
  std::map<std::string, QuorumView> quorum;
  const NodeList targets =
      stay_targets(context, {Lifecycle::kAllocated, Lifecycle::kMaintenance}, problems, warnings);
  const Leaving leaving(context, targets);
  leaving.check_states(problems);
  if (problems.empty()) {
    check_way(context, targets, problems);
    leaving.check_dangers(true, problems, warnings, quorum);
  }
  if (!problems.empty()) return problems.refuse("nothing goes into maintenance");

  Plan plan = stay_plan(context, targets, "maintenance of");
  plan.warnings = std::move(warnings);
  plan.quorum = std::move(quorum);
  if (!leaving.managers().empty()) plan.stages.push_back(leaving.observe());
  // What leaves the first one must not come to rest on the next: nobody gets new work from now on.
  NodeList active;
  std::copy_if(targets.begin(), targets.end(), std::back_inserter(active),
               [](const Node* n) { return last_availability(*n) == Availability::kActive; });
  if (targets.size() > 1 && !active.empty())
    plan.stages.push_back(leaving.availability("pause", active, Availability::kPause));
  int number = 0;
  for (const NodeList& batch : leaving.batches()) {
    const auto add = [&, n = number + 1](Stage stage) {
      stage.batch = n;
      plan.stages.push_back(std::move(stage));
    };
    add(leaving.availability("drain", batch, Availability::kDrain));
    const NodeList handing = leaving.handing_over(batch);
    if (!handing.empty()) {
      add(handover_stage(context.snapshot(), context.catalog(), "handover", ids_of(handing),
                         false));
      add(leaving.observe());  // who has it now
    }
    ++number;
  }
  return plan;
}

namespace {

bool comes_back(const Context& context, const Node& node) {
  const Leaving one(context, {&node});
  return !one.handing_over({&node}).empty();
}

void check_returning(const NodeList& targets, fleet::Problems& problems) {
  for (const Node* node : targets) {
    if (node->status.lifecycle != Lifecycle::kMaintenance) {
      problems.add(Code::kConflict,
                   Problem{"transition",
                           fmt::format("{} is {} and not in maintenance", node->name,
                                       fleet::word(node->status.lifecycle)),
                           "`clusterctl node ls` shows who is", node->name});
    } else if (!node->status.applied) {
      problems.add(
          Code::kConflict,
          Problem{"transition", fmt::format("{} carries nothing that was verified", node->name),
                  fmt::format("`clusterctl node decommission {}`", node->name), node->name});
    }
  }
}

}  // namespace

Result<Plan> plan_maintenance_exit(const Context& context) {
  fleet::Problems problems;
  std::vector<Problem> warnings;
  const NodeList targets = stay_targets(context, {Lifecycle::kMaintenance}, problems, warnings);
  check_returning(targets, problems);
  if (problems.empty()) check_way(context, targets, problems);
  if (!problems.empty()) return problems.refuse("nothing leaves maintenance");

  Plan plan = stay_plan(context, targets, "end of maintenance of");
  plan.warnings = std::move(warnings);
  const NodeList managers = context.managers();
  const Json vars = managers.empty()
                        ? Json::object()
                        : effective_vars(context.snapshot(), context.catalog(), *managers[0],
                                         managers[0]->status.applied->host_group);
  plan.stages.push_back(context.stage(
      "verify", targets, context.run_vars(managers, context.peer(ids_of(targets)), vars)));
  std::set<std::string> back;
  std::map<std::string, Availability> before;
  for (const Node* node : targets) {
    // One that did not answer when it was last tried may answer now: verify says so.
    Node there = *node;
    there.status.presence = fleet::Presence::kDiscovered;
    if (comes_back(context, there)) back.insert(node->id);
    if (context.is_scheduled(*node)) before[node->id] = availability_before(*node);
  }
  if (!back.empty())
    plan.stages.push_back(
        handover_stage(context.snapshot(), context.catalog(), "takeback", back, true));
  if (!before.empty()) {
    Stage stage = availability_stage(context.snapshot(), context.catalog(), "return", before);
    stage.vars.drain_deadline = 0;
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

}  // namespace clusterctl::plan
