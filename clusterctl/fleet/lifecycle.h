// The lifecycle of a node as one table of data: which event leads from where to where. Pure, any
// thread.
//
// Every busy state has a way out: Provisioning by commission or decommission again, Maintenance by
// resume, exit or decommission, Cancelled by decommission again or by force.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/node.h"

namespace clusterctl::fleet {

enum class Event {
  kCommission,             // a commission job took the node
  kCommissioned,           // verified
  kCommissionFailed,       // and cleaned; the caller sets Dirty if cleanup failed
  kMaintain,               // update, upgrade, promote, demote, maintenance
  kMaintained,             // verified
  kMaintenanceFailed,      // stays a member; the caller sets Failed
  kMaintenanceUntouched,   // failed before anything had changed
  kDecommission,           // a decommission job took the node
  kDecommissioned,         // verified, or removed by force
  kDecommissionFailed,     // the caller sets NotCleaned
  kDecommissionUntouched,  // ended before anything had changed (e.g. quorum_lost)
};

struct Transition {
  Lifecycle from;
  Event event;
  Lifecycle to;
  bool to_previous;  // back to status.previous when that is a busy or serving state, else to `to`
};

const std::vector<Transition>& transitions();
std::string_view event_name(Event event);

// Where `event` leads. kConflict "transition" says what is possible from here and by which command.
Result<Lifecycle> next(const Node& node, Event event);

}  // namespace clusterctl::fleet
