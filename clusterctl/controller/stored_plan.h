// A plan that was shown and may be applied: what is wanted, and what it was planned on. It holds
// only the nodes that it concerns. Plain values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "plan/wanted.h"

namespace clusterctl::controller {

inline constexpr std::chrono::hours kPlanKept{24};
inline constexpr size_t kKeptPlans = 50;

// What a node was when the plan was made.
struct Pin {
  std::string id;
  uint64_t generation = 0;  // 0: there was no such node
  std::string lifecycle;
  bool operator==(const Pin&) const = default;
};

struct StoredPlan {
  std::string id;
  std::string initiator;
  std::string title;
  Time created{};
  // Exactly one of these two.
  std::optional<plan::Wanted> wanted;
  Json job;                                    // a job request
  std::map<std::string, Pin> pins;             // by node name
  std::string globals;                         // digest of the global variables
  std::map<std::string, std::string> new_ids;  // of the nodes it adds, by name
  // Values that wait under secrets/: the name they shall have -> the name they have.
  std::map<std::string, std::string> secrets;
  // Once it was applied.
  std::optional<Time> applied;
  std::vector<std::string> jobs;
};

// One value of the store holds at most 512 KiB, so a plan is several: the first has everything but
// the nodes.
std::vector<Json> to_records(const StoredPlan& plan);
Result<StoredPlan> plan_from_records(const std::vector<Json>& records);

}  // namespace clusterctl::controller
