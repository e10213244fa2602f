#include "job/own_host.h"

#include <gtest/gtest.h>

#include "fakes/fleet_builder.h"

namespace clusterctl::job {
namespace {

class OwnHostTest : public testing::Test {
 protected:
  OwnHostTest() {
    fleet_.add("n1");
    fleet_.add("n2");
    fleet_.snapshot().own_host.machine_id = "abc";
    job_.kind = "commission";
    stage_.def.name = "check";
    stage_.nodes = {fleet_["n1"].id, fleet_["n2"].id};
    for (const char* name : {"n1", "n2"}) {
      NodeChange change;
      change.id = fleet_[name].id;
      change.hardware.emplace().machine_id = name == std::string("n1") ? "ABC" : "def";
      outcome_.observations.push_back(change);
    }
  }
  size_t refused() {
    StageOutcome outcome = outcome_;
    refuse_own_host(job_, stage_, fleet_.snapshot(), outcome);
    for (const Failure& f : outcome.failures) EXPECT_EQ(f.node, fleet_["n1"].id);
    EXPECT_EQ(outcome.state == StageState::kFailed, !outcome.failures.empty());
    return outcome.failures.size();
  }

  fleet::FleetBuilder fleet_;
  Job job_;
  StageStatus stage_;
  StageOutcome outcome_;
};

TEST_F(OwnHostTest, IsRecognisedByTheMachineIdThatCheckReads) {
  EXPECT_EQ(refused(), 1U);
}

TEST_F(OwnHostTest, WhenItIsMeantOrOnlyLookedAtNothingIsSaid) {
  job_.request.controller_host = true;
  EXPECT_EQ(refused(), 0U);
  job_.request.controller_host = false;
  job_.kind = "check";
  EXPECT_EQ(refused(), 0U);
  job_.kind = "commission";
  stage_.def.name = "verify";
  EXPECT_EQ(refused(), 0U);
}

TEST_F(OwnHostTest, AnUnknownMachineIdMatchesNothing) {
  fleet_.snapshot().own_host.machine_id.clear();
  outcome_.observations[0].hardware->machine_id.clear();
  EXPECT_EQ(refused(), 0U);
}

}  // namespace
}  // namespace clusterctl::job
