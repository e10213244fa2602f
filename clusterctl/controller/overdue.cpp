// Maintenance that should be over: said once, by a condition and an event. Nothing else happens.
#include <fmt/format.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller.h"
#include "fleet/conditions.h"
#include "fleet/operation.h"

namespace clusterctl::controller {
namespace {

bool is_news(const fleet::Node& node, Time now) {
  const auto& stay = node.status.maintenance;
  return stay && stay->until && *stay->until <= now &&
         !fleet::has_condition(node.status, fleet::condition::kMaintenanceOverdue);
}

std::string words(const fleet::Maintenance& stay) {
  return fmt::format("maintenance should have ended {}, asked for by {}{}{}",
                     format_time(*stay.until), stay.owner, stay.reason.empty() ? "" : ": ",
                     stay.reason);
}

}  // namespace

void Controller::note_overdue() {
  const auto now = deps_.clock.now();
  const auto snapshot = fleet();
  Change change;
  for (const auto& [id, node] : snapshot->nodes) {
    if (!is_news(node, now)) continue;
    fleet::Node after = node;
    const std::string reason = words(*node.status.maintenance);
    fleet::set_condition(after, fleet::condition::kMaintenanceOverdue, reason,
                         node.status.maintenance->job, now);
    add_events(change, node, after, "");
    change.events.push_back({0, {}, "node.maintenance_overdue", node.name, "", reason});
    change.nodes[id] = std::move(after);
  }
  if (change.nodes.empty()) return;
  if (auto done = commit(std::move(change)); !done)
    log::warn("overdue maintenance cannot be noted: {}", done.error().line());
}

}  // namespace clusterctl::controller
