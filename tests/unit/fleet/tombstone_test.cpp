#include "fleet/tombstone.h"

#include <gtest/gtest.h>

#include "fakes/fleet_builder.h"

namespace clusterctl::fleet {
namespace {

class TombstoneTest : public testing::Test {
 protected:
  TombstoneTest() {
    Node gone = make_node("gone", 7);
    set_condition(gone.status, condition::kNotCleaned, "removed by force", "", at(1));
    gone.status.hardware = Hardware{};
    gone.status.hardware->machine_id = "m-7";
    gone.status.hardware->uuid = "u-7";
    fleet_.tombstones[gone.id] = *tombstone_of(gone, at(2));
  }
  bool known(const std::string& name, int number, const std::string& machine_id = "",
             const std::string& uuid = "") {
    Node node = make_node(name, number);
    if (!machine_id.empty() || !uuid.empty()) {
      node.status.hardware = Hardware{};
      node.status.hardware->machine_id = machine_id;
      node.status.hardware->uuid = uuid;
    }
    return find_tombstone(fleet_, node) != nullptr;
  }
  Snapshot fleet_;
};

TEST_F(TombstoneTest, OnlyWhatOwesACleanupLeavesOne) {
  EXPECT_FALSE(tombstone_of(make_node("clean", 1), at(0)));
}

TEST_F(TombstoneTest, TheMachineIdDecidesThenTheUuidThenNameAndAddress) {
  EXPECT_TRUE(known("other", 9, "m-7")) << "another name and address, the same installation";
  EXPECT_FALSE(known("gone", 7, "m-8", "u-7")) << "installed again: nothing is left on it";
  EXPECT_TRUE(known("other", 9, "", "u-7"));
  EXPECT_FALSE(known("gone", 7, "", "u-8")) << "another machine in its place";
  EXPECT_TRUE(known("gone", 9)) << "nothing else is known yet";
  EXPECT_TRUE(known("other", 7));
  EXPECT_FALSE(known("other", 9));
}

TEST_F(TombstoneTest, MarksOnceAndNobodyWhoServes) {
  Node back = make_node("other", 7);
  EXPECT_TRUE(mark_returned(fleet_, back, at(3)));
  EXPECT_TRUE(has_condition(back.status, condition::kNotCleaned));
  EXPECT_FALSE(mark_returned(fleet_, back, at(4)));
  Node serves = make_node("other", 7);
  serves.status.lifecycle = Lifecycle::kAllocated;
  EXPECT_FALSE(mark_returned(fleet_, serves, at(3)));
}

TEST_F(TombstoneTest, IsReadAsItWasWritten) {
  const Tombstone& t = fleet_.tombstones.begin()->second;
  EXPECT_EQ(to_json(tombstone_from(to_json(t))), to_json(t));
  EXPECT_EQ(t.reason, "removed by force");
}

}  // namespace
}  // namespace clusterctl::fleet
