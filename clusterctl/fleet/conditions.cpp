#include "fleet/conditions.h"

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::fleet {

const std::vector<std::string_view>& condition_types() {
  static const std::vector<std::string_view> kTypes{condition::kDirty,
                                                    condition::kDrifted,
                                                    condition::kFailed,
                                                    condition::kHardwareReplaced,
                                                    condition::kIdentityConflict,
                                                    condition::kInterrupted,
                                                    condition::kLeaveRequested,
                                                    condition::kMaintenanceOverdue,
                                                    condition::kNeedsVerification,
                                                    condition::kNotCleaned,
                                                    condition::kPending,
                                                    condition::kReplaced};
  return kTypes;
}

const Condition* find_condition(const NodeStatus& status, std::string_view type) {
  for (const Condition& c : status.conditions) {
    if (c.type == type) return &c;
  }
  return nullptr;
}

bool set_condition(NodeStatus& status, std::string_view type, std::string_view reason,
                   std::string_view job, Time now) {
  Condition wanted{std::string(type), one_line(truncate_utf8(reason, 1000)), std::string(job), now};
  const auto it =
      std::lower_bound(status.conditions.begin(), status.conditions.end(), type,
                       [](const Condition& c, std::string_view t) { return c.type < t; });
  if (it == status.conditions.end() || it->type != type) {
    status.conditions.insert(it, std::move(wanted));
    return true;
  }
  if (it->reason == wanted.reason && it->job == wanted.job) return false;
  *it = std::move(wanted);
  return true;
}

bool clear_condition(NodeStatus& status, std::string_view type) {
  return std::erase_if(status.conditions, [&](const Condition& c) { return c.type == type; }) > 0;
}

}  // namespace clusterctl::fleet
