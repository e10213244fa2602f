#include "controller/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ansible/render.h"
#include "base/time.h"
#include "fleet/conditions.h"
#include "fleet/words.h"
#include "job/job_json.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kShownJobs = 5;

Json node_counts(const fleet::Snapshot& fleet) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : fleet::all_words<fleet::Lifecycle>()) counts[word] = 0;
  for (const auto& [id, node] : fleet.nodes)
    ++counts[std::string(fleet::word(node.status.lifecycle))];
  Json out = counts;
  out["total"] = fleet.nodes.size();
  return out;
}

Json members(const fleet::View& view) {
  Json out = Json::array();
  for (const fleet::SeenMember& m : view.members) {
    out.push_back(
        {{"name", m.name}, {"id", m.id}, {"reachable", m.reachable}, {"leader", m.leader}});
  }
  return out;
}

Json service_counts(const std::vector<fleet::View>& views) {
  Json out = Json::object();
  for (const fleet::View& view : views) {
    const fleet::Count count = view.count();
    if (count.total == 0) continue;
    out[view.service] = {{"members", count.total},
                         {"reachable", count.reachable},
                         {"tolerates", count.tolerates()},
                         {"leader", view.leader()},
                         {"list", members(view)},
                         {"observed", view.observed ? Json(format_time(*view.observed)) : Json()}};
  }
  return out;
}

Json vip(const fleet::Snapshot& fleet) {
  const std::string address = get_string(fleet.globals, "service_vip").value_or("");
  if (address.empty()) return Json();
  Json holders = Json::array();
  std::optional<Time> observed;
  for (const auto& [id, node] : fleet.nodes) {
    const auto ucarp = node.status.services.find("ucarp");
    if (ucarp == node.status.services.end()) continue;
    if (ucarp->second.role == "holder") holders.push_back(node.name);
    observed = std::max(observed.value_or(Time{}), ucarp->second.observed);
  }
  return {{"address", address},
          {"holders", holders},
          {"observed", observed ? Json(format_time(*observed)) : Json()}};
}

Json monitor(const fleet::Snapshot& fleet) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : fleet::all_words<fleet::Presence>()) counts[word] = 0;
  for (const auto& [id, node] : fleet.nodes)
    ++counts[std::string(fleet::word(node.status.presence))];
  return {
      {"presence", counts},
      {"isolated_since", fleet.isolated_since ? Json(format_time(*fleet.isolated_since)) : Json()}};
}

std::string hint_for(std::string_view code, const std::string& node) {
  if (code == fleet::condition::kDrifted) return fmt::format("clusterctl node update {}", node);
  if (code == fleet::condition::kNeedsVerification)
    return fmt::format("clusterctl node verify {}", node);
  if (code == fleet::condition::kMaintenanceOverdue)
    return fmt::format("clusterctl node maintenance exit {}", node);
  return fmt::format("clusterctl node inspect {}", node);
}

Json problems(const fleet::Snapshot& fleet) {
  Json out = Json::array();
  if (fleet.isolated_since) {
    out.push_back(
        {{"code", "CONTROLLER_ISOLATED"},
         {"message", "most nodes stopped answering at once, at " +
                         format_time(*fleet.isolated_since) +
                         ": who is there is known from before, and nothing is done by itself"},
         {"hint", "look at this machine's own network first"},
         {"node", ""}});
  }
  const auto add = [&](const fleet::Node& node, std::string code, std::string message) {
    out.push_back({{"code", code},
                   {"message", message},
                   {"hint", hint_for(code, node.name)},
                   {"node", node.name}});
  };
  for (const auto& [id, node] : fleet.nodes) {
    // What a job left behind says why; that it failed for this node is then no second problem.
    const std::vector<fleet::Condition>& all = node.status.conditions;
    const auto explained = [&all](const fleet::Condition& c) {
      return c.type == fleet::condition::kFailed &&
             std::any_of(all.begin(), all.end(), [&](const fleet::Condition& other) {
               return other.type != c.type && other.job == c.job;
             });
    };
    // Pending is no fault, nor is that another node has its place; Drifted is one where somebody is
    // to be asked.
    const auto quiet = [&fleet](const fleet::Condition& c) {
      return c.type == fleet::condition::kPending || c.type == fleet::condition::kReplaced ||
             (c.type == fleet::condition::kDrifted && fleet.cluster.drift_policy == "never");
    };
    for (const fleet::Condition& c : all) {
      if (!explained(c) && !quiet(c)) add(node, c.type, c.reason);
    }
    if (node.status.presence == fleet::Presence::kDisappeared && fleet::is_commissioned(node)) {
      add(node, "Disappeared", "does not answer");
    }
    for (const auto& [service, status] : node.status.services) {
      if (!status.healthy && node.status.applied)
        add(node, "Unhealthy", service + ": " + status.message);
    }
  }
  return out;
}

// Host variables of one commissioned node, without the controller's own connection files.
Json host_vars(const State& state, const catalog::Catalog& catalog, const fleet::Node& node) {
  const fleet::Applied& applied = *node.status.applied;
  Json vars =
      ansible::unsafe_value(plan::effective_vars(*state.fleet, catalog, node, applied.host_group));
  vars["ansible_host"] = node.spec.addr;
  if (node.spec.ssh.port != 22) vars["ansible_port"] = node.spec.ssh.port;
  if (!node.spec.ssh.user.empty()) vars["ansible_user"] = node.spec.ssh.user;
  vars["clusterctl_node_id"] = node.id;
  vars["clusterctl_role"] =
      fleet::word(plan::role_of(catalog, node).value_or(fleet::Role::kWorker));
  vars["clusterctl_services"] = applied.services;
  vars["clusterctl_availability"] = fleet::word(node.spec.availability);
  vars["clusterctl_recorded"] = Json::object();
  for (const auto& [service, status] : node.status.services) {
    if (!status.member_id.empty()) vars["clusterctl_recorded"][service] = status.member_id;
  }
  return vars;
}

}  // namespace

Json status_view(const State& state, const catalog::Catalog& catalog) {
  Json out{{"cluster", state.fleet->cluster.name},
           {"nodes", node_counts(*state.fleet)},
           {"services", service_counts(plan::observe_members(*state.fleet, catalog))},
           {"vip", vip(*state.fleet)},
           {"monitor", monitor(*state.fleet)},
           {"problems", problems(*state.fleet)},
           {"failed_jobs", Json::array()},
           {"running_jobs", Json::array()}};
  for (auto it = state.jobs.rbegin(); it != state.jobs.rend(); ++it) {
    const job::Job& job = *it->second;
    const bool bad = job.state == job::State::kFailed || job.state == job::State::kInterrupted;
    if (bad && out["failed_jobs"].size() < kShownJobs)
      out["failed_jobs"].push_back(job::to_json(job, *state.fleet));
    if (!job::is_final(job.state)) out["running_jobs"].push_back(job::to_json(job, *state.fleet));
  }
  return out;
}

Json inventory_view(const State& state, const catalog::Catalog& catalog,
                    const std::string& pki_dir) {
  Json groups = Json::object();
  Json hostvars = Json::object();
  std::vector<std::string> managers, all;
  for (const auto& [id, node] : state.fleet->nodes) {
    if (!node.status.applied) continue;
    hostvars[node.name] = host_vars(state, catalog, node);
    groups[node.status.applied->host_group]["hosts"].push_back(node.name);
    all.push_back(node.name);
    if (plan::role_of(catalog, node) == fleet::Role::kManager) managers.push_back(node.name);
  }
  std::sort(all.begin(), all.end());
  std::sort(managers.begin(), managers.end());
  Json vars{{"clusterctl_cluster_name", state.fleet->cluster.name},
            {"clusterctl_managers", managers}};
  const std::string vip = get_string(state.fleet->globals, "service_vip").value_or("");
  const fleet::Node* only = managers.size() == 1 ? state.fleet->by_name(managers.front()) : nullptr;
  vars["clusterctl_pki_dir"] = pki_dir;
  vars["clusterctl_endpoint"] = !vip.empty() ? vip : only ? only->spec.addr : "";
  groups["clusterctl_targets"] = {{"hosts", all}};
  groups["all"] = {{"vars", vars}};
  groups["_meta"] = {{"hostvars", hostvars}};
  return groups;
}

}  // namespace clusterctl::controller
