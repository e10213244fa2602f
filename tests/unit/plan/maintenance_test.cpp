#include <gmock/gmock.h>

#include "plan/plan_fixture.h"

namespace clusterctl::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MaintenanceTest : public PlanTest {
 protected:
  MaintenanceTest() {
    three_managers_one_worker();
    for (const char* name : {"w2", "w3", "w4"}) fleet_.worker(name);
    fleet_.report();
  }
  static Json enter(std::vector<std::string> nodes) {
    return {{"kind", "maintenance-enter"}, {"nodes", nodes}};
  }
  static Json with(Json body, const char* key, const Json& value) {
    body[key] = value;
    return body;
  }
  void in_maintenance(const std::string& name,
                      fleet::Availability before = fleet::Availability::kActive) {
    fleet::Node& node = fleet_[name];
    node.status.lifecycle = fleet::Lifecycle::kMaintenance;
    node.status.maintenance = fleet::Maintenance{};
    node.status.maintenance->kind = "maintenance-enter";
    node.status.maintenance->before = before;
    node.status.applied->availability = fleet::Availability::kDrain;
  }
};

TEST_F(MaintenanceTest, AManagerHandsOverAfterItWasDrained) {
  const Plan p = accepted(enter({"m2"}));
  EXPECT_EQ(stages(p), "observe m1,m2,m3; drain m2; handover m2; observe m1,m2,m3");
  EXPECT_EQ(stage(p, "handover")->in_service, false);
  EXPECT_NE(stage(p, "handover")->vars.peer, "m2");
  EXPECT_THAT(p.changes, IsEmpty()) << "what is wanted stays";
}

TEST_F(MaintenanceTest, SeveralArePausedBeforeTheFirstIsDrained) {
  const Plan p = accepted(with(enter({"w1", "w2"}), "max_unavailable", "2"));
  EXPECT_EQ(stages(p), "pause w1,w2; drain w1,w2");
  EXPECT_EQ(p.stages[0].batch, 0);
  EXPECT_EQ(p.stages[1].batch, 1);
}

TEST_F(MaintenanceTest, ForceDrainsBatchByBatch) {
  const Plan p = accepted(with(enter({"w1", "w2"}), "force", true));
  EXPECT_EQ(stages(p), "pause w1,w2; drain w1; drain w2");
  EXPECT_EQ(p.warnings.at(0).code, "budget");
}

TEST_F(MaintenanceTest, TheBudgetCountsWhatIsAwayAlready) {
  EXPECT_THAT(refused(enter({"w1", "w2"})), ElementsAre("budget"));
  in_maintenance("w3");
  EXPECT_THAT(refused(enter({"w1"})), ElementsAre("budget"));
  EXPECT_THAT(refused(with(enter({"w1"}), "max_unavailable", "2")), IsEmpty());
  EXPECT_THAT(refused(enter({"w3"})), IsEmpty()) << "it is away already";
}

TEST_F(MaintenanceTest, AManagerInMaintenanceMayGoDownAtAnyMoment) {
  in_maintenance("m1");
  EXPECT_THAT(refused(enter({"m2"})), ElementsAre("quorum", "quorum"));
  EXPECT_THAT(refused(with(with(enter({"m2"}), "force", true), "allow_outage", true)),
              ElementsAre("quorum", "quorum"))
      << "no word steps over a majority of three";
  EXPECT_THAT(refused({{"kind", "reboot"}, {"nodes", {"m2"}}}), ElementsAre("quorum", "quorum"));
  EXPECT_THAT(refused({{"kind", "update"}, {"nodes", {"m2"}}}), ElementsAre("quorum", "quorum"));
  EXPECT_THAT(refused(enter({"m1"})), IsEmpty()) << "again";
  EXPECT_THAT(refused({{"kind", "reboot"}, {"nodes", {"m1"}}}), IsEmpty());
}

TEST_F(MaintenanceTest, NoMemberIsTakenOutBesideOneInMaintenance) {
  const Json demote{{"kind", "demote"}, {"nodes", {"m2"}}};
  const Json leave{{"kind", "decommission"}, {"nodes", {"m2"}}};
  const Json promote{{"kind", "promote"}, {"nodes", {"w1"}}};
  for (const Json& body : {demote, leave, promote}) EXPECT_THAT(refused(body), IsEmpty()) << body;
  in_maintenance("m1");
  for (const Json& body : {demote, leave, promote}) {
    const auto p = plan(body);
    ASSERT_FALSE(p) << body;
    for (const Problem& problem : p.error().problems) {
      EXPECT_EQ(problem.code, "quorum") << body;
      EXPECT_THAT(problem.message, HasSubstr("m1 is in maintenance"));
      EXPECT_THAT(problem.hint, HasSubstr("`clusterctl node maintenance exit m1`"));
      EXPECT_THAT(problem.hint, testing::Not(HasSubstr("powered")));
    }
  }
  EXPECT_THAT(refused(with(leave, "force", true)), ElementsAre("quorum", "quorum"));
  EXPECT_THAT(refused({{"kind", "decommission"}, {"nodes", {"m1", "m2"}}}),
              ElementsAre("quorum", "quorum"))
      << "one after the other";
  EXPECT_THAT(refused({{"kind", "decommission"}, {"nodes", {"m1"}}}), IsEmpty())
      << "it is the one that is away";
  EXPECT_THAT(refused(with(promote, "force", true)), IsEmpty()) << "one more makes nothing worse";
}

TEST_F(MaintenanceTest, AfterThisJobsOwnObservationItIsAskedOnceMore) {
  const Json leave{{"kind", "decommission"}, {"nodes", {"m2"}}};
  const Plan p = accepted(leave);
  in_maintenance("m1");
  const auto again = recheck_quorum(fleet_.snapshot(), catalog_, request(leave), p);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().reason, "quorum_lost");
  fleet_["m1"].status.maintenance->kind = "reboot";
  const Json both{{"kind", "reboot"}, {"nodes", {"m1", "m2"}}};
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, request(both), accepted(both)))
      << "m1 is back before m2 goes";
}

TEST_F(MaintenanceTest, ADeadManagerCanBeTakenOutMeanwhile) {
  in_maintenance("m1");
  fleet_.report({"m3"}, 200);
  fleet_["m3"].status.presence = fleet::Presence::kDisappeared;
  EXPECT_THAT(
      refused(
          {{"kind", "decommission"}, {"nodes", {"m3"}}, {"force", true}, {"powered_off", true}}),
      IsEmpty());
}

TEST_F(MaintenanceTest, TwoOfThreeManagersAtOnceAreOneTooMany) {
  EXPECT_THAT(refused(enter({"m1", "m2"})), ElementsAre("quorum", "quorum", "quorum", "quorum"));
  EXPECT_THAT(refused({{"kind", "reboot"}, {"nodes", {"m1", "m2"}}}), IsEmpty())
      << "one after the other";
}

TEST_F(MaintenanceTest, ADeadNodeIsAWarningToStepOver) {
  fleet_["w1"].status.presence = fleet::Presence::kDisappeared;
  EXPECT_THAT(refused(enter({"w1"})), ElementsAre("not_seen"));
  const Plan p = accepted(with(enter({"w1"}), "force", true));
  EXPECT_EQ(stage(p, "drain")->vars.drain_deadline, 0) << "nobody could say that it stopped";
}

TEST_F(MaintenanceTest, OthersLeaveItAlone) {
  in_maintenance("w1");
  for (const char* kind : {"drain", "activate"})
    EXPECT_THAT(refused({{"kind", kind}, {"nodes", {"w1"}}}), ElementsAre("in_maintenance"));
  for (const char* kind : {"check", "verify", "update", "decommission", "reboot"})
    EXPECT_THAT(refused({{"kind", kind}, {"nodes", {"w1"}}}), IsEmpty()) << kind;
}

TEST_F(MaintenanceTest, ExitVerifiesFirstAndGivesBackWhatWasThere) {
  in_maintenance("m1", fleet::Availability::kPause);
  const Plan p = accepted({{"kind", "maintenance-exit"}, {"nodes", {"m1"}}});
  EXPECT_EQ(stages(p), "verify m1; takeback m1; return m1");
  EXPECT_EQ(stage(p, "return")->availability.begin()->second, fleet::Availability::kPause);
  EXPECT_EQ(stage(p, "takeback")->in_service, true);
  EXPECT_THAT(refused({{"kind", "maintenance-exit"}, {"nodes", {"m2"}}}),
              ElementsAre("transition"));
  const auto none = plan({{"kind", "maintenance-exit"}, {"host_group", "service-worker"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().problems[0].message, "no node that fits is in maintenance");
}

TEST_F(MaintenanceTest, RebootGoesThroughMaintenance) {
  const Plan p =
      accepted({{"kind", "reboot"}, {"nodes", {"w1", "m1", "w2"}}, {"max_unavailable", 2}});
  EXPECT_EQ(stages(p),
            "observe m1,m2,m3; drain m1; handover m1; observe m1,m2,m3; reboot m1; verify m1; "
            "takeback m1; restore m1; drain w1,w2; reboot w1,w2; verify w1,w2; restore w1,w2");
}

TEST_F(MaintenanceTest, RebootInMaintenanceOnlyReboots) {
  in_maintenance("w1");
  EXPECT_EQ(stages(accepted({{"kind", "reboot"}, {"nodes", {"w1"}}})), "reboot w1; verify w1");
  fleet_["w1"].status.maintenance->kind = "reboot";  // one that broke off: gone on with
  EXPECT_EQ(stages(accepted({{"kind", "reboot"}, {"nodes", {"w1"}}})),
            "drain w1; reboot w1; verify w1; restore w1");
}

}  // namespace
}  // namespace clusterctl::plan
