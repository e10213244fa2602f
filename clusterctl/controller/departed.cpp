#include "controller/departed.h"

#include <algorithm>

namespace clusterctl::controller {

Json to_record(const Departed& departed) {
  return {{"v", 1},
          {"leave_digest", departed.leave_digest},
          {"since", departed.since.time_since_epoch().count()}};
}

Departed departed_from(const Json& record) {
  return {get_string(record, "leave_digest").value_or(""),
          Time(std::chrono::milliseconds(get_int(record, "since").value_or(0)))};
}

void remember_departed(const DepartedMachines& known, const std::string& id, Departed departed,
                       DepartedChanges& out) {
  out[id] = std::move(departed);
  if (known.size() < kMaxDeparted) return;
  const auto first = std::min_element(known.begin(), known.end(), [](const auto& a, const auto& b) {
    return a.second.since < b.second.since;
  });
  if (first->first != id) out[first->first] = std::nullopt;
}

void apply(const DepartedChanges& changes, DepartedMachines& known) {
  for (const auto& [id, departed] : changes) {
    if (departed) {
      known[id] = *departed;
    } else {
      known.erase(id);
    }
  }
}

}  // namespace clusterctl::controller
