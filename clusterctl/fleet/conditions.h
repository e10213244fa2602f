// Conditions of a node: at most one of each type, sorted by type. Pure, any thread.
#pragma once

#include <string_view>
#include <vector>

#include "fleet/node.h"

namespace clusterctl::fleet {

namespace condition {
inline constexpr std::string_view kDirty = "Dirty";    // a cleanup failed: something may be left
inline constexpr std::string_view kFailed = "Failed";  // the last job failed on it
inline constexpr std::string_view kNeedsVerification = "NeedsVerification";
inline constexpr std::string_view kIdentityConflict =
    "IdentityConflict";  // another node answers with its identity
inline constexpr std::string_view kHardwareReplaced = "HardwareReplaced";
inline constexpr std::string_view kDrifted = "Drifted";  // what was applied is not what is wanted
inline constexpr std::string_view kInterrupted = "Interrupted";  // a job on it broke off
inline constexpr std::string_view kNotCleaned =
    "NotCleaned";  // left the cluster without cleanup: a tombstone
inline constexpr std::string_view kMaintenanceOverdue =
    "MaintenanceOverdue";                                  // its maintenance should be over
inline constexpr std::string_view kPending = "Pending";    // wanted in service, cannot be yet
inline constexpr std::string_view kReplaced = "Replaced";  // another node has taken its place
inline constexpr std::string_view kLeaveRequested =
    "LeaveRequested";  // the machine itself asks to be taken out
}  // namespace condition

const std::vector<std::string_view>& condition_types();

const Condition* find_condition(const NodeStatus& status, std::string_view type);
inline bool has_condition(const NodeStatus& status, std::string_view type) {
  return find_condition(status, type) != nullptr;
}
// False when it was there already with the same reason and job; `since` then stays.
bool set_condition(NodeStatus& status, std::string_view type, std::string_view reason,
                   std::string_view job, Time now);
bool clear_condition(NodeStatus& status, std::string_view type);

}  // namespace clusterctl::fleet
