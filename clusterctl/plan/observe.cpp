// observe: what every manager sees of the cluster. Read-only.
#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {

Result<Plan> plan_observe(const Context& context) {
  if (!context.request().nodes.empty() || !context.request().host_group.empty() ||
      !context.request().selector.empty()) {
    return fail(Code::kInvalid, "not_for_kind", "observe takes all managers and no others",
                "leave nodes, host_group and selector out");
  }
  const NodeList managers = context.managers();
  if (managers.empty()) {
    return fail(Code::kNotFound, "no_nodes", "there is no manager to observe",
                "`clusterctl node commission NAME --host-group=service-master`");
  }
  Plan plan;
  plan.kind = "observe";
  plan.title = "observe the managers";
  const Json vars = effective_vars(context.snapshot(), context.catalog(), *managers[0],
                                   managers[0]->status.applied->host_group, context.request().vars);
  plan.stages.push_back(
      context.stage("observe", managers, context.run_vars(managers, nullptr, vars)));
  for (const Node* node : managers) {
    plan.targets.push_back(node->id);
    plan.roles[node->id] = fleet::Role::kManager;
  }
  for (const fleet::View& view : context.views()) {
    const fleet::Count c = view.count();
    if (c.total > 0) plan.quorum[view.service] = {c.total, c.reachable, c.total, c.tolerates()};
  }
  return plan;
}

}  // namespace clusterctl::plan
