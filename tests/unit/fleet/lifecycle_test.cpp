#include "fleet/lifecycle.h"

#include <gtest/gtest.h>

#include <set>

#include "fakes/fleet_builder.h"
#include "fleet/operation.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

using enum Lifecycle;

const std::vector<Lifecycle> kLifecycles{kUnallocated, kProvisioning, kAllocated,
                                         kMaintenance, kCancelled,    kDecommissioned};
const std::vector<Event> kEvents{Event::kCommission,           Event::kCommissioned,
                                 Event::kCommissionFailed,     Event::kMaintain,
                                 Event::kMaintained,           Event::kMaintenanceFailed,
                                 Event::kMaintenanceUntouched, Event::kDecommission,
                                 Event::kDecommissioned,       Event::kDecommissionFailed,
                                 Event::kDecommissionUntouched};

TEST(Lifecycle, EveryPairIsDecided) {
  const std::map<std::pair<Lifecycle, Event>, Lifecycle> allowed{
      {{kUnallocated, Event::kCommission}, kProvisioning},
      {{kDecommissioned, Event::kCommission}, kProvisioning},
      {{kProvisioning, Event::kCommission}, kProvisioning},
      {{kProvisioning, Event::kCommissioned}, kAllocated},
      {{kProvisioning, Event::kCommissionFailed}, kUnallocated},
      {{kProvisioning, Event::kDecommission}, kCancelled},
      {{kAllocated, Event::kMaintain}, kMaintenance},
      {{kMaintenance, Event::kMaintain}, kMaintenance},
      {{kMaintenance, Event::kMaintained}, kAllocated},
      {{kMaintenance, Event::kMaintenanceFailed}, kMaintenance},
      {{kMaintenance, Event::kMaintenanceUntouched}, kAllocated},
      {{kAllocated, Event::kDecommission}, kCancelled},
      {{kMaintenance, Event::kDecommission}, kCancelled},
      {{kCancelled, Event::kDecommission}, kCancelled},
      {{kCancelled, Event::kDecommissioned}, kDecommissioned},
      {{kCancelled, Event::kDecommissionFailed}, kCancelled},
      {{kCancelled, Event::kDecommissionUntouched}, kCancelled},
  };
  EXPECT_EQ(allowed.size(), transitions().size());
  for (Lifecycle from : kLifecycles) {
    for (Event event : kEvents) {
      Node node = make_node("n1", 1);
      node.status.lifecycle = from;
      const auto to = next(node, event);
      const auto want = allowed.find({from, event});
      ASSERT_EQ(to.has_value(), want != allowed.end()) << word(from) << " " << event_name(event);
      if (to) {
        EXPECT_EQ(*to, want->second) << word(from) << " " << event_name(event);
      } else {
        EXPECT_EQ(to.error().code, Code::kConflict);
        EXPECT_EQ(to.error().reason, "transition");
        EXPECT_NE(to.error().hint.find("clusterctl node"), std::string::npos);
      }
    }
  }
}

TEST(Lifecycle, EveryBusyStateHasAWayOutForTheOperator) {
  for (Lifecycle l : {kProvisioning, kMaintenance, kCancelled}) {
    Node node = make_node("n1", 1);
    node.status.lifecycle = l;
    EXPECT_TRUE(next(node, Event::kDecommission)) << word(l);
  }
}

TEST(Lifecycle, AnUntouchedDecommissionGoesBackToWhatItWas) {
  for (Lifecycle before : {kAllocated, kMaintenance, kProvisioning}) {
    Node node = make_node("n1", 1);
    node.status.lifecycle = before;
    ASSERT_TRUE(apply_event(node, Event::kDecommission));
    EXPECT_EQ(node.status.previous, before);
    ASSERT_TRUE(apply_event(node, Event::kDecommissionUntouched));
    EXPECT_EQ(node.status.lifecycle, before);
  }
}

TEST(Lifecycle, ButNotAfterAnEarlierAttemptTookHalfOfItAway) {
  Node node = make_node("n1", 1);
  node.status.lifecycle = kAllocated;
  ASSERT_TRUE(apply_event(node, Event::kDecommission));
  ASSERT_TRUE(apply_event(node, Event::kDecommissionFailed));
  set_condition(node, condition::kNotCleaned, "etcd: still listed", "job1", at(1));
  ASSERT_TRUE(apply_event(node, Event::kDecommission));
  ASSERT_TRUE(apply_event(node, Event::kDecommissionUntouched));
  EXPECT_EQ(node.status.lifecycle, kCancelled);
}

TEST(Conditions, OneOfEachTypeSorted) {
  NodeStatus s;
  EXPECT_TRUE(set_condition(s, condition::kFailed, "a\nb", "j1", at(1)));
  EXPECT_TRUE(set_condition(s, condition::kDirty, "x", "j1", at(1)));
  EXPECT_FALSE(set_condition(s, condition::kFailed, "a b", "j1", at(2)));
  EXPECT_EQ(find_condition(s, condition::kFailed)->since, at(1));
  EXPECT_TRUE(set_condition(s, condition::kFailed, "c", "j1", at(2)));
  EXPECT_EQ(find_condition(s, condition::kFailed)->since, at(2));
  ASSERT_EQ(s.conditions.size(), 2u);
  EXPECT_EQ(s.conditions[0].type, "Dirty");
  EXPECT_TRUE(clear_condition(s, condition::kDirty));
  EXPECT_FALSE(clear_condition(s, condition::kDirty));
  EXPECT_TRUE(has_condition(s, condition::kFailed));
  for (std::string_view type : condition_types())
    EXPECT_TRUE(set_condition(s, type, "r", "", at(3)));
  EXPECT_TRUE(std::is_sorted(s.conditions.begin(), s.conditions.end(),
                             [](auto& a, auto& b) { return a.type < b.type; }));
}

}  // namespace
}  // namespace clusterctl::fleet
