#include "fleet/lifecycle.h"

#include <fmt/format.h>

#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

using enum Lifecycle;

// What an operator can do with a node in this state.
std::string way_on(const Node& node, Event event) {
  const std::string& n = node.name;
  if (event == Event::kDecommission && !is_commissioned(node)) {
    return fmt::format(
        "there is nothing to take out of service: `clusterctl node rm {0}` forgets it, `clusterctl "
        "node commission {0}` puts it into service",
        n);
  }
  if (event == Event::kMaintain && node.status.lifecycle == kCancelled) {
    return fmt::format(
        "`clusterctl node decommission {0}` ends what was begun, then `clusterctl "
        "node commission {0}`",
        n);
  }
  switch (node.status.lifecycle) {
    case kUnallocated:
    case kDecommissioned:
      return fmt::format("`clusterctl node commission {}` puts it into service", n);
    case kProvisioning:
      return fmt::format(
          "`clusterctl node commission {0}` again, or `clusterctl node decommission {0}`", n);
    case kAllocated:
      return fmt::format("`clusterctl node decommission {}` first", n);
    case kMaintenance:
      return fmt::format(
          "`clusterctl node maintenance exit {0}` puts it back into service, `clusterctl node "
          "update "
          "{0}` goes on with an update, `clusterctl node decommission {0}` takes it out of the "
          "cluster",
          n);
    case kCancelled:
      return fmt::format(
          "`clusterctl node decommission {0}` again; if it will never answer: "
          "`clusterctl node decommission {0} --force --i-have-powered-it-off`",
          n);
  }
  return "";
}

}  // namespace

const std::vector<Transition>& transitions() {
  static const std::vector<Transition> kTable{
      {kUnallocated, Event::kCommission, kProvisioning, false},
      {kDecommissioned, Event::kCommission, kProvisioning, false},
      {kProvisioning, Event::kCommission, kProvisioning,
       false},  // left over from an interrupted job
      {kProvisioning, Event::kCommissioned, kAllocated, false},
      {kProvisioning, Event::kCommissionFailed, kUnallocated, false},

      {kAllocated, Event::kMaintain, kMaintenance, false},
      {kMaintenance, Event::kMaintain, kMaintenance, false},  // resume
      {kMaintenance, Event::kMaintained, kAllocated, false},
      {kMaintenance, Event::kMaintenanceFailed, kMaintenance, false},
      {kMaintenance, Event::kMaintenanceUntouched, kAllocated, false},

      {kAllocated, Event::kDecommission, kCancelled, false},
      {kMaintenance, Event::kDecommission, kCancelled, false},
      {kProvisioning, Event::kDecommission, kCancelled,
       false},                                                // left over from an interrupted job
      {kCancelled, Event::kDecommission, kCancelled, false},  // again
      {kCancelled, Event::kDecommissioned, kDecommissioned, false},
      {kCancelled, Event::kDecommissionFailed, kCancelled, false},
      {kCancelled, Event::kDecommissionUntouched, kCancelled, true},
  };
  return kTable;
}

std::string_view event_name(Event event) {
  switch (event) {
    case Event::kCommission:
      return "commission";
    case Event::kCommissioned:
      return "commissioned";
    case Event::kCommissionFailed:
      return "commission failed";
    case Event::kMaintain:
      return "maintenance";
    case Event::kMaintained:
      return "maintained";
    case Event::kMaintenanceFailed:
      return "maintenance failed";
    case Event::kMaintenanceUntouched:
      return "maintenance untouched";
    case Event::kDecommission:
      return "decommission";
    case Event::kDecommissioned:
      return "decommissioned";
    case Event::kDecommissionFailed:
      return "decommission failed";
    case Event::kDecommissionUntouched:
      return "decommission untouched";
  }
  return "?";
}

Result<Lifecycle> next(const Node& node, Event event) {
  const NodeStatus& status = node.status;
  for (const Transition& t : transitions()) {
    if (t.from != status.lifecycle || t.event != event) continue;
    if (!t.to_previous) return t.to;
    // An earlier attempt may have taken half of the node away: then it is not what it was before.
    for (const Condition& c : status.conditions) {
      if (c.type == "NotCleaned") return t.to;
    }
    const Lifecycle before = status.previous.value_or(t.to);
    return before == kAllocated || before == kMaintenance || before == kProvisioning ? before
                                                                                     : t.to;
  }
  return fail(Code::kConflict, "transition",
              event == Event::kMaintain && !is_commissioned(node)
                  ? fmt::format("{} is {} and serves nothing that could be changed", node.name,
                                word(status.lifecycle))
                  : fmt::format("{} is {}, which allows no {}", node.name, word(status.lifecycle),
                                event_name(event)),
              way_on(node, event));
}

}  // namespace clusterctl::fleet
