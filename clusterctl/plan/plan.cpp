#include "plan/plan.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "fleet/patterns.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

std::string name_of(const fleet::Snapshot& snapshot, const std::string& id) {
  const auto it = snapshot.nodes.find(id);
  return it == snapshot.nodes.end() ? id : it->second.name;
}

Json stage_json(const Stage& stage, const fleet::Snapshot& snapshot) {
  Json nodes = Json::array(), services = Json::object();
  for (const std::string& id : stage.nodes) {
    nodes.push_back(name_of(snapshot, id));
    const auto it = stage.services.find(id);
    if (it != stage.services.end()) services[name_of(snapshot, id)] = it->second;
  }
  Json out{{"name", stage.name},
           {"playbook", stage.playbook},
           {"nodes", std::move(nodes)},
           {"services", std::move(services)},
           {"parallel", stage.one_by_one ? "one-by-one" : "all"}};
  if (stage.batch > 0) out["batch"] = stage.batch;
  return out;
}

}  // namespace

Json to_json(const Plan& plan, const fleet::Snapshot& snapshot) {
  Json stages = Json::array(), quorum = Json::object(), warnings = Json::array();
  for (const Stage& stage : plan.stages) stages.push_back(stage_json(stage, snapshot));
  for (const auto& [service, q] : plan.quorum) {
    quorum[service] = {
        {"before", q.total_before}, {"after", q.total_after}, {"tolerates", q.tolerates_after}};
  }
  for (const Problem& w : plan.warnings) {
    warnings.push_back(
        {{"code", w.code}, {"message", w.message}, {"hint", w.hint}, {"node", w.node}});
  }
  return {{"kind", plan.kind},
          {"title", plan.title},
          {"stages", std::move(stages)},
          {"quorum", std::move(quorum)},
          {"warnings", std::move(warnings)}};
}

namespace {

Result<Plan> plan_kind(const Context& context) {
  const Request& request = context.request();
  if (request.kind == "commission") return plan_commission(context);
  if (request.kind == "decommission") return plan_decommission(context);
  if (request.kind == "check") return plan_check(context);
  if (request.kind == "verify") return plan_verify(context);
  if (request.kind == "observe") return plan_observe(context);
  if (availability_of(request.kind)) return plan_availability(context);
  if (reassigns(request)) return plan_reassign(context);
  if (request.kind == "update") return plan_update(context);
  if (request.kind == "replace") return plan_replace(context);
  if (request.kind == "maintenance-enter") return plan_maintenance_enter(context);
  if (request.kind == "maintenance-exit") return plan_maintenance_exit(context);
  if (request.kind == "reboot") return plan_reboot(context);
  return fail(Code::kInvalid, "unknown_kind",
              fmt::format("{} is not a kind of job", fleet::shown(request.kind)),
              "one of: " + join(kKinds, ", "));
}

}  // namespace

Result<Plan> make_plan(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                       const Request& request) {
  const Context context(snapshot, catalog, request);
  auto plan = plan_kind(context);
  if (!plan) return plan;
  fleet::Problems problems;
  for (Problem& p : check_maintenance(context, *plan)) problems.add(Code::kConflict, std::move(p));
  if (!problems.empty()) return problems.refuse("nothing is done");
  if (auto ok = check_identity(snapshot, request, *plan); !ok) return fail(ok.error());
  return plan;
}

}  // namespace clusterctl::plan
