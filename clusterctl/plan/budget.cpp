// How many workers may be down at once, and which are.
#include <algorithm>
#include <charconv>

#include "fleet/words.h"
#include "plan/plan.h"

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
    const bool serves = node.status.lifecycle == fleet::Lifecycle::kAllocated ||
                        node.status.lifecycle == fleet::Lifecycle::kMaintenance;
    if (!serves || !node.status.applied || role_of(catalog, node) != fleet::Role::kWorker) continue;
    out.all.insert(id);
    if (is_away(snapshot, catalog, node)) out.unavailable.insert(id);
  }
  return out;
}

}  // namespace clusterctl::plan
