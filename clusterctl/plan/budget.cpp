// How many workers may be down at once, and which are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

// What the managers said last of a worker's membership: the freshest healthy report that lists it.
bool listed_as_away(const fleet::Snapshot& snapshot, const std::string& service,
                    const std::string& member_id) {
  const fleet::ServiceStatus* best = nullptr;
  bool away = false;
  for (const auto& [id, node] : snapshot.nodes) {
    const auto report = node.status.services.find(service);
    if (report == node.status.services.end() || !report->second.healthy) continue;
    if (best && report->second.observed <= best->observed) continue;
    for (const fleet::Member& member : report->second.members) {
      if (member.id != member_id) continue;
      best = &report->second;
      away = !member.reachable;
    }
  }
  return away;
}

bool is_away(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
             const fleet::Node& node) {
  if (node.status.presence == fleet::Presence::kDisappeared) return true;
  if (node.status.lifecycle == fleet::Lifecycle::kMaintenance) return true;
  if (last_availability(node) == fleet::Availability::kDrain) return true;
  for (const auto& [name, status] : node.status.services) {
    if (!status.healthy) return true;
    const catalog::Service* service = catalog.service(name);
    if (service && service->schedules && listed_as_away(snapshot, name, status.member_id))
      return true;
  }
  return false;
}

}  // namespace

std::optional<int> budget(const std::string& max_unavailable, int workers) {
  int number = 0;
  const char* end = max_unavailable.data() + max_unavailable.size();
  const auto [p, ec] = std::from_chars(max_unavailable.data(), end, number);
  const bool percent = p != end && *p == '%' && p + 1 == end;
  if (ec != std::errc() || number < 1 || (p != end && !percent)) return std::nullopt;
  if (!percent) return number;
  if (number > 100) return std::nullopt;
  return std::max(1, workers * number / 100);
}

WorkerState worker_state(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog) {
  WorkerState out;
  for (const auto& [id, node] : snapshot.nodes) {
    const fleet::Lifecycle l = node.status.lifecycle;
    const bool leaves = l == fleet::Lifecycle::kCancelled;
    const bool serves =
        l == fleet::Lifecycle::kAllocated || l == fleet::Lifecycle::kMaintenance || leaves;
    if (!serves || !node.status.applied || role_of(catalog, node) != fleet::Role::kWorker) continue;
    out.all.insert(id);
    if (leaves || is_away(snapshot, catalog, node)) {
      out.unavailable.insert(id);
    } else if (node.spec.availability == fleet::Availability::kDrain) {
      out.wished.insert(id);
    }
  }
  return out;
}

Budget budget_for(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                  const std::string& max_unavailable, const std::vector<std::string>& nodes,
                  const std::set<std::string>& waiting) {
  const WorkerState state = worker_state(snapshot, catalog);
  Budget out;
  out.wanted = max_unavailable.empty() ? snapshot.cluster.max_unavailable : max_unavailable;
  out.workers = static_cast<int>(state.all.size());
  out.may = budget(out.wanted, out.workers).value_or(1);
  out.away = state.unavailable;
  for (const std::string& id : nodes) {
    if (state.all.count(id) && !state.unavailable.count(id)) out.costing.insert(id);
  }
  for (const std::string& id : state.wished) {
    if (!out.costing.count(id) && !waiting.count(id)) out.away.insert(id);
  }
  return out;
}

Problem over_budget(const Budget& budget, const fleet::Snapshot& snapshot) {
  const auto names = [&](const std::set<std::string>& ids) {
    NodeList nodes;
    for (const std::string& id : ids) nodes.push_back(&snapshot.nodes.at(id));
    sort_by_name(nodes);
    return some_names(nodes);
  };
  const size_t away = budget.away.size();
  const std::string now =
      away == 0 ? fmt::format("all {} are in use", budget.workers)
                : fmt::format("{} of {} {} out of use already ({})", away, budget.workers,
                              away == 1 ? "is" : "are", names(budget.away));
  return {"budget",
          fmt::format("{} {} would go down, {}, and max_unavailable is {}",
                      budget.costing.size() == 1 ? "worker" : "workers", names(budget.costing), now,
                      budget.wanted),
          "fewer at a time, bring the others back first, or allow more with --max-unavailable", ""};
}

}  // namespace clusterctl::plan
