#include "job/run_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "job/undo.h"
#include "plan/drift.h"
#include "plan/plan.h"

namespace clusterctl::job {
namespace {

// The host group a node has for this run: wanted for targets of work that changes it, applied
// otherwise.
std::string group_of(const fleet::Node& node, const Job& job, bool wanted) {
  const auto change = job.changes.find(node.id);
  if (wanted && change != job.changes.end()) return change->second.host_group;
  if (node.status.applied) return node.status.applied->host_group;
  return node.spec.host_group;
}

// The same for the role. What was wanted of a node at the start tells it; else what the plan said.
fleet::Role role_for(const fleet::Node& node, const Job& job, const catalog::Catalog& catalog,
                     bool wanted) {
  const auto change = job.changes.find(node.id);
  if (wanted && change != job.changes.end() && !change->second.host_group.empty()) {
    const auto& [group, capabilities] =
        std::tie(change->second.host_group, change->second.capabilities);
    return catalog.role(group, catalog.capabilities_for(group, capabilities));
  }
  const auto role = job.roles.find(node.id);
  if (wanted && role != job.roles.end()) return role->second;
  return plan::role_of(catalog, node).value_or(fleet::Role::kWorker);
}

class InputBuilder {
 public:
  InputBuilder(const Context& context, const Job& job, const StageStatus& stage)
      : context_(context), job_(job), stage_(stage), fleet_(context.host.fleet()) {}

  Result<ansible::RunInput> build(const std::string& run_id) {
    ansible::RunInput in;
    const plan::RunVars& vars = stage_.def.vars;
    in.run_id = run_id;
    in.cluster_name = fleet_->cluster.name;
    in.initiator = vars.initiator;
    in.peer = vars.peer;
    in.endpoint = vars.endpoint;
    in.managers = vars.managers;
    in.leaving = vars.leaving;
    in.only_services = vars.only_services;
    in.cleanup_level = vars.cleanup_level;
    in.drain_deadline = vars.drain_deadline;
    in.order = job_.continuation.order.empty() ? job_.id : job_.continuation.order;
    in.fence_runs = stage_.fences;
    for (const plan::Lost& lost : vars.lost) in.lost.push_back({lost.name, lost.addr, lost.ids});
    in.pki_dir = context_.defaults.pki_dir;
    in.default_user = context_.defaults.user;
    in.private_key = context_.defaults.private_key;
    in.run_dir = context_.runs.dir(run_id).string();
    for (const std::string& id : stage_.nodes) {
      if (auto status = add_host(in, id, true); !status) return fail(status.error());
    }
    for (const std::string& id : stage_.def.peers) {
      if (std::find(stage_.nodes.begin(), stage_.nodes.end(), id) != stage_.nodes.end()) continue;
      if (auto status = add_host(in, id, false); !status) return fail(status.error());
    }
    auto request_vars = context_.host.resolve(job_.request.vars);
    if (!request_vars) return fail(request_vars.error());
    in.request_vars = request_vars->vars;
    keep_secrets(in, request_vars->secret_values);
    return in;
  }

 private:
  static void keep_secrets(ansible::RunInput& in, const std::vector<std::string>& values) {
    in.secret_values.insert(in.secret_values.end(), values.begin(), values.end());
  }

  Status add_host(ansible::RunInput& in, const std::string& id, bool target) {
    const auto it = fleet_->nodes.find(id);
    if (it == fleet_->nodes.end()) {
      return fail(Code::kNotFound, "no_such_node",
                  fmt::format("node {} was removed meanwhile", id));
    }
    const fleet::Node& node = it->second;
    ansible::Host host;
    host.id = node.id;
    host.name = node.name;
    host.addr = node.spec.addr;
    host.ssh = node.spec.ssh;
    host.target = target;
    const bool wanted = target && !stage_.def.as_before;
    host.host_group = group_of(node, job_, wanted);
    host.role = role_for(node, job_, context_.catalog, wanted);
    host.availability = availability_during(job_, stage_, node);
    if (target) host.in_service = stage_.def.in_service;
    if (const auto services = stage_.def.services.find(id); services != stage_.def.services.end()) {
      host.services = services->second;
    }
    for (const auto& [service, status] : node.status.services) {
      if (!status.member_id.empty()) host.recorded[service] = status.member_id;
    }
    auto vars = context_.host.resolve(
        plan::effective_vars(*fleet_, context_.catalog, node, host.host_group));
    if (!vars) return fail(vars.error());
    host.vars = std::move(vars->vars);
    keep_secrets(in, vars->secret_values);
    in.hosts.push_back(std::move(host));
    return {};
  }

  const Context& context_;
  const Job& job_;
  const StageStatus& stage_;
  std::shared_ptr<const fleet::Snapshot> fleet_;
};

}  // namespace

void note_rendered(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                   const catalog::Catalog& catalog) {
  if (stage.def.name != "site") return;
  for (const std::string& id : stage.nodes) {
    const auto node = fleet.nodes.find(id);
    if (node == fleet.nodes.end()) continue;
    job.rendered[id] =
        plan::config_fingerprint(fleet, catalog, node->second, group_of(node->second, job, true));
  }
}

Result<ansible::RunInput> make_run_input(const Context& context, const Job& job,
                                         const StageStatus& stage, const std::string& run_id) {
  return InputBuilder(context, job, stage).build(run_id);
}

}  // namespace clusterctl::job
