// check: read-only, on any accepted node; verify and observe: on commissioned ones.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

bool in_group(const Context& context, const Node& node) {
  const std::string& wanted = context.request().host_group;
  if (wanted.empty()) return true;
  return (node.status.applied ? node.status.applied->host_group : node.spec.host_group) == wanted;
}

// Named nodes, or all that fit group, selector and `may`; managers first.
NodeList find(const Context& context, fleet::Problems& problems, Plan& plan,
              bool (*may)(const Node&)) {
  NodeList out;
  if (!context.request().nodes.empty()) {
    out = context.named(problems, plan.warnings);
  } else {
    for (const Node* node : context.selected(problems)) {
      if (may(*node) && in_group(context, *node)) out.push_back(node);
    }
    if (out.empty() && problems.empty()) {
      problems.add(
          Code::kNotFound,
          Problem{"no_nodes", fmt::format("there is no node to {}", context.request().kind),
                  "`clusterctl node ls` shows the nodes", ""});
    }
  }
  std::stable_partition(out.begin(), out.end(), [&](const Node* n) {
    return role_of(context.catalog(), *n) == fleet::Role::kManager;
  });
  return out;
}

void fill(const Context& context, const NodeList& targets, Plan& plan) {
  plan.kind = context.request().kind;
  plan.title = targets.size() == 1 ? fmt::format("{} {}", plan.kind, targets[0]->name)
                                   : fmt::format("{} {} nodes", plan.kind, targets.size());
  for (const Node* node : targets) {
    plan.targets.push_back(node->id);
    plan.roles[node->id] = role_of(context.catalog(), *node).value_or(fleet::Role::kWorker);
  }
  const NodeList managers = context.managers();
  const Json vars =
      managers.empty()
          ? context.request().vars
          : effective_vars(context.snapshot(), context.catalog(), *managers[0],
                           managers[0]->status.applied->host_group, context.request().vars);
  plan.stages.push_back(context.stage(
      plan.kind, targets, context.run_vars(managers, context.peer(ids_of(targets)), vars)));
  for (const fleet::View& view : context.views()) {
    const fleet::Count c = view.count();
    if (c.total > 0 && plan.kind != "check")
      plan.quorum[view.service] = {c.total, c.reachable, c.total, c.tolerates()};
  }
}

bool accepted(const Node& node) {
  return node.spec.acceptance == fleet::Acceptance::kAccepted;
}
// Spare and retired machines are checked only by name.
bool checkable(const Node& node) {
  return accepted(node) &&
         (is_commissioned(node) || node.spec.allocation == fleet::Allocation::kInService);
}
bool verifiable(const Node& node) {
  return is_commissioned(node) && node.status.applied.has_value();
}

// What the node would carry if it were commissioned as the request says.
void check_as_wanted(const Context& context, fleet::Problems& problems, const NodeList& targets,
                     Plan& plan) {
  const Request& r = context.request();
  if (!r.host_group.empty() && !context.catalog().host_group(r.host_group)) {
    problems.add(
        Code::kInvalid,
        Problem{"unknown_group", fmt::format("there is no host group \"{}\"", r.host_group),
                "one of: " + join(context.catalog().host_group_names(), ", "), ""});
    return;
  }
  for (const Node* node : targets) {
    if (node->status.applied) continue;
    const std::string& group = r.host_group.empty() ? node->spec.host_group : r.host_group;
    const auto& given = r.capabilities.empty() ? node->spec.capabilities : r.capabilities;
    const auto capabilities = context.catalog().capabilities_for(group, given);
    const Json vars = effective_vars(context.snapshot(), context.catalog(), *node, group, r.vars);
    plan.roles[node->id] = context.catalog().role(group, capabilities);
    plan.stages[0].services[node->id] = context.catalog().services_for(group, capabilities, vars);
    plan.changes[node->id] = {
        group, given, r.availability.value_or(node->spec.availability), {}, {}};
  }
}

}  // namespace

Result<Plan> plan_check(const Context& context) {
  fleet::Problems problems;
  Plan plan;
  const NodeList targets = find(context, problems, plan, checkable);
  for (const Node* node : targets) {
    if (accepted(*node)) continue;
    problems.add(Code::kRefused,
                 Problem{"not_accepted",
                         fmt::format("{} is {}, not accepted", node->name,
                                     fleet::word(node->spec.acceptance)),
                         fmt::format("`clusterctl node accept {}`", node->name), node->name});
  }
  if (problems.empty()) {
    fill(context, targets, plan);
    check_as_wanted(context, problems, targets, plan);
  }
  if (!problems.empty()) return problems.refuse("nothing is checked");
  return plan;
}

Result<Plan> plan_verify(const Context& context) {
  fleet::Problems problems;
  Plan plan;
  const NodeList targets = find(context, problems, plan, verifiable);
  for (const Node* node : targets) {
    if (verifiable(*node)) continue;
    problems.add(Code::kConflict,
                 Problem{"transition",
                         fmt::format("{} is {} and carries nothing that was verified", node->name,
                                     fleet::word(node->status.lifecycle)),
                         fmt::format("`clusterctl node commission {}`", node->name), node->name});
  }
  if (!problems.empty()) return problems.refuse("nothing is verified");
  fill(context, targets, plan);
  return plan;
}

}  // namespace clusterctl::plan
