#include "plan/stay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "fleet/lifecycle.h"
#include "fleet/recognize.h"
#include "fleet/words.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;

// Kinds of job that may take a node that is in maintenance; any other leaves it to whoever works
// there.
const std::set<std::string, std::less<>> kInMaintenance{
    "check", "verify", "observe", "update", "decommission", "maintenance-enter", "maintenance-exit",
    "reboot"};

}  // namespace

std::string command_words(std::string_view kind) {
  std::string out(kind);
  if (kind.starts_with("maintenance-")) out[kind.find('-')] = ' ';
  return out;
}

fleet::Availability availability_before(const Node& node) {
  return node.status.maintenance ? node.status.maintenance->before : last_availability(node);
}

std::vector<Problem> check_maintenance(const Context& context, const Plan& plan) {
  std::vector<Problem> out;
  if (kInMaintenance.count(plan.kind)) return out;
  for (const std::string& id : plan.targets) {
    const Node& node = context.snapshot().nodes.at(id);
    const auto& stay = node.status.maintenance;
    if (!stay) continue;
    out.push_back({"in_maintenance",
                   fmt::format("{} is in maintenance since {} for {}{}{}", node.name,
                               format_time(stay->since), stay->owner,
                               stay->reason.empty() ? "" : ": ", stay->reason),
                   fmt::format("`clusterctl node maintenance exit {}` first", node.name),
                   node.name});
  }
  return out;
}

NodeList stay_targets(const Context& context, const std::set<Lifecycle>& in,
                      fleet::Problems& problems, std::vector<Problem>& warnings) {
  const Request& r = context.request();
  NodeList found;
  if (!r.nodes.empty()) {
    found = context.named(problems, warnings);
  } else if (r.selector.empty() && r.host_group.empty()) {
    problems.add(Code::kInvalid,
                 Problem{"no_nodes", "no nodes are named",
                         fmt::format("`clusterctl node {} NAME…`", command_words(r.kind)), ""});
  } else {
    for (const Node* node : context.selected(problems)) {
      const auto& applied = node->status.applied;
      const bool in_group =
          r.host_group.empty() || (applied && applied->host_group == r.host_group);
      if (in_group && applied && in.count(node->status.lifecycle)) found.push_back(node);
    }
    if (found.empty() && problems.empty()) {
      problems.add(Code::kNotFound,
                   Problem{"no_nodes",
                           r.kind == "maintenance-exit" ? "no node that fits is in maintenance"
                                                        : "no commissioned node fits",
                           "`clusterctl node ls` shows the nodes and their state", ""});
    }
  }
  std::stable_partition(found.begin(), found.end(), [&](const Node* node) {
    return role_of(context.catalog(), *node) == fleet::Role::kManager;
  });
  return found;
}

void check_way(const Context& context, const NodeList& targets, fleet::Problems& problems) {
  const NodeList managers = context.managers();
  const bool through_itself =
      managers.size() == 1 && targets.size() == 1 && targets[0] == managers[0];
  if (through_itself || context.peer({})) return;
  problems.add(Code::kConflict, fleet::no_manager_to_ask(
                                    managers, "no manager answers through which it could be done"));
}

Leaving::Leaving(const Context& context, const NodeList& targets)
    : context_(context),
      workers_(worker_state(context.snapshot(), context.catalog())),
      all_(targets) {
  for (const Node* node : targets) {
    const bool manager = role_of(context.catalog(), *node) == fleet::Role::kManager;
    (manager ? managers_ : others_).push_back(node);
  }
  // Those that are out of use anyway go first: they cost nobody anything.
  std::stable_partition(others_.begin(), others_.end(), [&](const Node* n) { return is_away(*n); });
}

void Leaving::check_states(fleet::Problems& problems) const {
  for (const Node* node : all_) {
    if (auto to = next(*node, fleet::Event::kMaintain); !to) {
      problems.add(to.error(), node->name);
    } else if (!node->status.applied) {
      problems.add(
          Code::kConflict,
          Problem{"transition", fmt::format("{} carries nothing that was verified", node->name),
                  fmt::format("`clusterctl node decommission {}`", node->name), node->name});
    } else if (!context_.is_scheduled(*node)) {
      problems.add(Code::kConflict,
                   Problem{"no_scheduler",
                           fmt::format("{} carries no service that schedules work", node->name),
                           "`clusterctl node ls -o wide` shows the services", node->name});
    }
  }
}

Budget Leaving::workers_budget() const {
  std::vector<std::string> ids;
  for (const Node* node : others_) ids.push_back(node->id);
  return budget_for(context_.snapshot(), context_.catalog(), context_.request().max_unavailable,
                    ids);
}

void Leaving::danger(bool stepped_over, Problem problem, fleet::Problems& problems,
                     std::vector<Problem>& warnings) const {
  if (stepped_over) {
    warnings.push_back(std::move(problem));
    return;
  }
  problem.hint += (problem.hint.empty() ? "" : "; ") + std::string("or step over it with --force");
  problems.add(Code::kConflict, std::move(problem));
}

void Leaving::check_dangers(bool at_once, fleet::Problems& problems, std::vector<Problem>& warnings,
                            std::map<std::string, QuorumView>& quorum) const {
  const Request& r = context_.request();
  for (Problem& p : check_disrupting(context_, managers_, quorum, at_once))
    problems.add(Code::kConflict, std::move(p));
  for (const Node* node : all_) {
    if (!at_once || !is_lost(*node)) continue;
    danger(r.force,
           {"not_seen",
            fmt::format("{} does not answer: it can hand nothing over, and nobody can say that its "
                        "tasks have stopped",
                        node->name),
            fmt::format("`clusterctl node check {}` looks again", node->name), node->name},
           problems, warnings);
  }
  const bool works = std::any_of(all_.begin(), all_.end(), [](const Node* n) {
    return last_availability(*n) != Availability::kDrain;
  });
  if (works && no_place()) {
    danger(r.force,
           {"no_place",
            fmt::format("no other active node could take over what runs on {}", some_names(all_)),
            "`clusterctl node activate NAME` makes a place", ""},
           problems, warnings);
  }
  const Budget budget = workers_budget();
  const bool one_fits = budget.costing.empty() || budget.room() >= 1;
  if (at_once ? budget.fits() : one_fits) return;
  danger(r.force, over_budget(budget, context_.snapshot()), problems, warnings);
}

std::vector<NodeList> Leaving::batches() const {
  std::vector<NodeList> out;
  for (const Node* node : managers_) out.push_back({node});
  const Budget budget = workers_budget();
  const int may = std::max(1, budget.may), room = std::max(1, budget.room());
  NodeList batch;
  for (const Node* node : others_) {
    const bool mixed = !batch.empty() && (is_away(*batch[0]) != is_away(*node) ||
                                          is_lost(*batch[0]) != is_lost(*node));
    const int size = batch.empty() || is_away(*batch[0]) ? may : room;
    if (mixed || static_cast<int>(batch.size()) >= size) {
      out.push_back(std::move(batch));
      batch.clear();
    }
    batch.push_back(node);
  }
  if (!batch.empty()) out.push_back(std::move(batch));
  return out;
}

NodeList Leaving::handing_over(const NodeList& batch) const {
  NodeList out;
  for (const Node* node : batch) {
    const auto services = context_.services_of(*node);
    const bool moves = std::any_of(services.begin(), services.end(), [&](const std::string& name) {
      const catalog::Service* service = context_.catalog().service(name);
      return service && service->hands_over;
    });
    if (moves && !is_lost(*node)) out.push_back(node);
  }
  return out;
}

Stage Leaving::availability(const std::string& name, const NodeList& batch, Availability to) const {
  std::map<std::string, Availability> wanted;
  for (const Node* node : batch) wanted[node->id] = to;
  Stage out = availability_stage(context_.snapshot(), context_.catalog(), name, wanted);
  out.nodes.clear();
  for (const Node* node : batch) out.nodes.push_back(node->id);
  out.vars.drain_deadline = context_.request().deadline;
  // Where nobody takes over, or nobody could say that it stopped, there is nothing to wait for.
  if (!out.vars.drain_deadline && (no_place() || is_lost(*batch[0]))) out.vars.drain_deadline = 0;
  return out;
}

Stage Leaving::observe() const {
  const NodeList managers = context_.managers();
  const Json vars = managers.empty()
                        ? Json::object()
                        : effective_vars(context_.snapshot(), context_.catalog(), *managers[0],
                                         managers[0]->status.applied->host_group);
  return context_.stage("observe", managers, context_.run_vars(managers, nullptr, vars));
}

Stage handover_stage(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                     const std::string& name, const std::set<std::string>& nodes, bool in_service) {
  const Request none;
  const Context context(snapshot, catalog, none);
  NodeList targets;
  for (const std::string& id : nodes) {
    const auto it = snapshot.nodes.find(id);
    if (it != snapshot.nodes.end()) targets.push_back(&it->second);
  }
  sort_by_name(targets);
  const NodeList managers = context.managers();
  const Json vars = managers.empty() ? Json::object()
                                     : effective_vars(snapshot, catalog, *managers[0],
                                                      managers[0]->status.applied->host_group);
  Stage out = context.stage(name, targets, context.run_vars(managers, context.peer(nodes), vars));
  out.playbook = "handover.yml";
  out.in_service = in_service;
  return out;
}

Plan stay_plan(const Context& context, const NodeList& targets, const std::string& doing) {
  Plan plan;
  plan.kind = context.request().kind;
  plan.title = targets.size() == 1 ? fmt::format("{} {}", doing, targets[0]->name)
                                   : fmt::format("{} {} nodes", doing, targets.size());
  for (const Node* node : targets) {
    plan.targets.push_back(node->id);
    plan.roles[node->id] = role_of(context.catalog(), *node).value_or(fleet::Role::kWorker);
  }
  return plan;
}

}  // namespace clusterctl::plan
