#include "controller/cluster_views.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/time_json.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kShownUnhealthy = 20;

std::string status_word(const fleet::SeenMember& m) {
  return m.leader ? "Leader" : m.reachable ? "Reachable" : "Unreachable";
}

// What one manager is in every service that counts members: {"etcd": "Leader"}.
Json parts_of(const std::vector<fleet::View>& views, const std::string& node) {
  Json out = Json::object();
  for (const fleet::View& view : views) {
    const fleet::SeenMember* m = view.of(node);
    if (m) out[view.service] = status_word(*m);
  }
  return out;
}

Json manager_json(const fleet::Node& node, const std::string& status,
                  const std::vector<fleet::View>& views) {
  const auto ucarp = node.status.services.find("ucarp");
  return {{"name", node.name},
          {"node", node.id},
          {"addr", node.spec.addr},
          {"status", status},
          {"availability", fleet::word(plan::last_availability(node))},
          {"lifecycle", fleet::word(node.status.lifecycle)},
          {"presence", fleet::word(node.status.presence)},
          {"services", parts_of(views, node.id)},
          {"holds_vip", ucarp != node.status.services.end() && ucarp->second.role == "holder"}};
}

// A member that has no record here.
Json stranger_json(const fleet::SeenMember& m) {
  return {{"name", m.name},     {"node", ""},      {"addr", ""},     {"status", status_word(m)},
          {"availability", ""}, {"lifecycle", ""}, {"presence", ""}, {"services", Json::object()},
          {"holds_vip", false}};
}

const fleet::View* scheduler_of(const std::vector<fleet::View>& views,
                                const catalog::Catalog& catalog) {
  const auto it = std::find_if(views.begin(), views.end(), [&](const fleet::View& v) {
    const catalog::Service* service = catalog.service(v.service);
    return service && service->schedules;
  });
  return it == views.end() ? nullptr : &*it;
}

struct Tally {
  int64_t nodes = 0, healthy = 0;
  std::map<std::string, int64_t> versions;
  Json unhealthy = Json::array();
  std::set<std::string> endpoints;
  std::optional<Time> observed;
};

void count(Tally& tally, const fleet::Node& node, const std::string& service) {
  ++tally.nodes;
  const auto seen = node.status.services.find(service);
  const bool healthy = seen != node.status.services.end() && seen->second.healthy;
  tally.healthy += healthy;
  if (!healthy && tally.unhealthy.size() < kShownUnhealthy) {
    tally.unhealthy.push_back(
        {{"name", node.name},
         {"message",
          seen == node.status.services.end() ? "nothing was reported" : seen->second.message}});
  }
  if (seen == node.status.services.end()) return;
  ++tally.versions[seen->second.version];
  if (healthy && !seen->second.endpoint.empty()) tally.endpoints.insert(seen->second.endpoint);
  tally.observed = std::max(tally.observed.value_or(Time{}), seen->second.observed);
}

}  // namespace

Json managers_view(const State& state, const catalog::Catalog& catalog) {
  const fleet::Snapshot& fleet = *state.fleet;
  const auto views = plan::observe_members(fleet, catalog);
  const fleet::View* scheduler = scheduler_of(views, catalog);
  std::map<std::string, Json> rows;  // by name
  if (scheduler) {
    for (const fleet::SeenMember& m : scheduler->members) {
      const auto node = fleet.nodes.find(m.node);
      rows[m.name] = node == fleet.nodes.end() ? stranger_json(m)
                                               : manager_json(node->second, status_word(m), views);
    }
  }
  for (const auto& [id, node] : fleet.nodes) {
    const bool manager = node.status.applied && fleet::is_commissioned(node) &&
                         plan::role_of(catalog, node) == fleet::Role::kManager;
    if (manager && !rows.count(node.name)) rows[node.name] = manager_json(node, "Unknown", views);
  }
  Json managers = Json::array();
  for (auto& [name, row] : rows) managers.push_back(std::move(row));
  return {{"scheduler", scheduler ? scheduler->service : ""},
          {"observed", scheduler ? time_or_null(scheduler->observed) : Json()},
          {"managers", std::move(managers)}};
}

Json services_view(const State& state, const catalog::Catalog& catalog) {
  std::map<std::string, Tally> tallies;
  for (const auto& [id, node] : state.fleet->nodes) {
    if (!node.status.applied || !fleet::is_commissioned(node)) continue;
    for (const std::string& service : node.status.applied->services)
      count(tallies[service], node, service);
  }
  const auto views = plan::observe_members(*state.fleet, catalog);
  Json services = Json::array();
  for (const catalog::Service& service : catalog.services()) {
    const auto it = tallies.find(service.name);
    if (it == tallies.end()) continue;
    Tally& t = it->second;
    Json row{{"name", service.name},     {"nodes", t.nodes},
             {"healthy", t.healthy},     {"versions", t.versions},
             {"unhealthy", t.unhealthy}, {"endpoints", t.endpoints},
             {"quorum", Json()},         {"observed", time_or_null(t.observed)}};
    for (const fleet::View& view : views) {
      if (view.service != service.name || view.members.empty()) continue;
      const fleet::Count c = view.count();
      row["quorum"] = {{"members", c.total},
                       {"reachable", c.reachable},
                       {"tolerates", c.tolerates()},
                       {"leader", view.leader()}};
    }
    services.push_back(std::move(row));
  }
  return {{"services", std::move(services)}};
}

}  // namespace clusterctl::controller
