#include "fleet/quorum.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fakes/fleet_builder.h"

namespace clusterctl::fleet {
namespace {

StepCase step_case(Step step, int total, int reachable) {
  StepCase c;
  c.service = "etcd";
  c.node = "n1";
  c.step = step;
  c.count = {total, reachable};
  c.others_stay = true;
  return c;
}

bool allowed(StepCase c) {
  return !check_step(c).has_value();
}

TEST(Quorum, TheTableOfRules) {
  struct Row {
    Step step;
    int total, reachable;
    bool plain, force, outage,
        alone;  // allowed: as it is, with force, with allow_outage, when no other node stays
  };
  const std::vector<Row> rows{
      {Step::kFirst, 0, 0, true, true, true, true},
      {Step::kFirst, 1, 1, false, false, false, false},
      {Step::kAdd, 1, 1, true, true, true, true},
      {Step::kAdd, 1, 0, false, false, false, false},
      {Step::kAdd, 2, 2, true, true, true, true},
      {Step::kAdd, 2, 1, false, false, false, false},
      {Step::kAdd, 3, 3, true, true, true, true},
      {Step::kAdd, 3, 2, false, true, false, false},
      {Step::kAdd, 3, 1, false, false, false, false},
      {Step::kAdd, 5, 4, false, true, false, false},
      {Step::kRemove, 1, 1, false, true, false, true},
      {Step::kRemove, 2, 2, true, true, true, true},
      {Step::kRemove, 2, 1, false, false, false, false},
      {Step::kRemove, 3, 3, true, true, true, true},
      {Step::kRemove, 3, 2, false, false, false, false},
      {Step::kRemove, 4, 4, true, true, true, true},
      {Step::kRemove, 4, 3, true, true, true, true},
      {Step::kRemove, 4, 2, false, false, false, false},
      {Step::kRemove, 5, 4, true, true, true, true},
      {Step::kRemove, 5, 3, false, false, false, false},
      {Step::kRemove, 7, 5, true, true, true, true},
      {Step::kRemove, 7, 4, false, false, false, false},
      {Step::kRemoveDead, 1, 0, false, false, false, false},
      {Step::kRemoveDead, 2, 1, false, false, false, false},
      {Step::kRemoveDead, 3, 2, true, true, true, true},
      {Step::kRemoveDead, 3, 1, false, false, false, false},
      {Step::kRemoveDead, 5, 3, true, true, true, true},
      {Step::kDisrupt, 1, 1, false, false, true, false},
      {Step::kDisrupt, 2, 2, false, false, true, false},
      {Step::kDisrupt, 3, 3, true, true, true, true},
      {Step::kDisrupt, 3, 2, false, false, false, false},
      {Step::kDisrupt, 4, 4, true, true, true, true},
      {Step::kDisrupt, 5, 4, true, true, true, true},
      {Step::kDisrupt, 5, 3, false, false, false, false},
      {Step::kFree, 3, 0, true, true, true, true},
      {Step::kEverything, 3, 0, true, true, true, true},
  };
  for (const Row& row : rows) {
    const std::string what = "step " + std::to_string(static_cast<int>(row.step)) +
                             " T=" + std::to_string(row.total) +
                             " H=" + std::to_string(row.reachable);
    StepCase c = step_case(row.step, row.total, row.reachable);
    EXPECT_EQ(allowed(c), row.plain) << what;
    c.force = true;
    EXPECT_EQ(allowed(c), row.force) << what << " force";
    c.force = false;
    c.allow_outage = true;
    EXPECT_EQ(allowed(c), row.outage) << what << " outage";
    c.allow_outage = false;
    c.others_stay = false;
    EXPECT_EQ(allowed(c), row.alone) << what << " alone";
  }
}

TEST(Quorum, ARefusalHasNumbersAndAHint) {
  StepCase c = step_case(Step::kRemove, 3, 2);
  c.missing = {"n3"};
  const auto p = check_step(c);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->code, "quorum");
  EXPECT_EQ(p->node, "n1");
  EXPECT_EQ(p->message,
            "without n1 only 1 of 2 members of etcd would answer, 2 must; etcd has 3 members, 2 of "
            "them answer (not n3)");
  EXPECT_NE(p->hint.find("clusterctl node decommission n3 --force --i-have-powered-it-off"),
            std::string::npos);
  c.missing = {"\"$(id)\" (unknown here)"};
  EXPECT_EQ(check_step(c)->hint.find("$(id)"), std::string::npos)
      << "a stranger's name is never part of a command";
}

TEST(Quorum, WhatIsInMaintenanceMayStopAtAnyMoment) {
  EXPECT_TRUE(rc::check("what is allowed stays safe when it stops", [] {
    StepCase c = step_case(*rc::gen::elementOf(std::vector<Step>{
                               Step::kAdd, Step::kRemove, Step::kRemoveDead, Step::kDisrupt}),
                           *rc::gen::inRange(3, 9), 0);
    const bool dead = c.step == Step::kRemoveDead;
    c.count.reachable = *rc::gen::inRange(1, c.count.total + (dead ? 0 : 1));
    const int by = *rc::gen::inRange(0, c.count.reachable);
    for (int i = 0; i < by; ++i) c.in_maintenance.push_back("x" + std::to_string(i));
    c.force = *rc::gen::arbitrary<bool>();
    const bool safe_before = c.sure() >= majority(c.count.total);
    if (!allowed(c)) {
      RC_ASSERT(check_step(c)->hint.find("maintenance exit x0") != std::string::npos || by == 0 ||
                c.count.reachable < majority(c.count.total));
      return;
    }
    const Count later = after(c.step, {c.count.total, c.sure()});
    const bool takes_away = c.step == Step::kRemove || c.step == Step::kDisrupt;
    if (takes_away || safe_before) RC_ASSERT(later.reachable >= majority(later.total));
    if (c.step == Step::kAdd && by > 0) RC_ASSERT(c.force);
  }));
  StepCase c = step_case(Step::kRemove, 3, 3);
  c.in_maintenance = {"m1"};
  ASSERT_TRUE(check_step(c));
  EXPECT_EQ(check_step(c)->message,
            "without n1 only 1 of 2 members of etcd would answer, 2 must; etcd has 3 members, 3 of "
            "them answer, and m1 is in maintenance");
  EXPECT_EQ(check_step(c)->hint, "`clusterctl node maintenance exit m1` first");
  c.step = Step::kRemoveDead;
  c.count = {3, 2};
  EXPECT_TRUE(allowed(c)) << "taking out a dead one makes nothing worse";
}

TEST(Quorum, AllowedStepsKeepTheMajority) {
  EXPECT_TRUE(rc::check("after every allowed step a majority answers", [] {
    StepCase c =
        step_case(*rc::gen::elementOf(std::vector<Step>{Step::kFirst, Step::kAdd, Step::kRemove,
                                                        Step::kRemoveDead, Step::kDisrupt}),
                  *rc::gen::inRange(0, 12), 0);
    c.count.reachable = *rc::gen::inRange(0, c.count.total + 1);
    // One that answers can only be removed when one answers, a dead one only when one does not.
    if (c.step == Step::kRemoveDead && c.count.reachable == c.count.total) return;
    if ((c.step == Step::kRemove || c.step == Step::kDisrupt) && c.count.reachable == 0) return;
    c.force = *rc::gen::arbitrary<bool>();
    c.others_stay = *rc::gen::arbitrary<bool>();
    if (!allowed(c)) return;
    const Count later = after(c.step, c.count);
    RC_ASSERT(later.reachable >= 0 && later.reachable <= later.total);
    if (later.total > 0) RC_ASSERT(later.reachable >= majority(later.total));
  }));
}

TEST(Quorum, ToleratedLossesAreReallyTolerated) {
  EXPECT_TRUE(rc::check([] {
    const int total = *rc::gen::inRange(0, 12);
    const Count c{total, *rc::gen::inRange(0, total + 1)};
    RC_ASSERT(c.tolerates() >= 0);
    if (c.reachable >= majority(total) && total > 0) {
      RC_ASSERT(c.reachable - c.tolerates() >= majority(total));
      RC_ASSERT(c.reachable - c.tolerates() - 1 < majority(total));
    }
  }));
}

bool by_group(const Node& n) {
  return n.status.applied && n.status.applied->host_group == "service-master";
}

TEST(View, WithoutObservationTheAppliedManagersCount) {
  FleetBuilder fleet;
  fleet.manager("n1").status.services.clear();
  fleet.manager("n2").status.services.clear();
  fleet["n2"].status.presence = Presence::kDisappeared;
  fleet.worker("w1");
  fleet.add("n3", "service-master");
  fleet.manager("old").status.lifecycle = Lifecycle::kDecommissioned;
  const View v = observe(fleet.snapshot(), "etcd", by_group);
  EXPECT_EQ(v.count(), (Count{2, 1}));
  EXPECT_EQ(v.missing(), (std::vector<std::string>{"n2"}));
  EXPECT_FALSE(v.observed);
  EXPECT_EQ(observe(fleet.snapshot(), "other", by_group).count(), (Count{0, 0}));
}

TEST(View, MembersWhateverTheirLifecycle) {
  FleetBuilder fleet;
  for (const char* name : {"n1", "n2", "n3"}) fleet.manager(name);
  fleet.report();
  fleet["n3"].status.lifecycle = Lifecycle::kCancelled;
  fleet["n2"].status.lifecycle = Lifecycle::kMaintenance;
  const View v = observe(fleet.snapshot(), "swarm", by_group);
  EXPECT_EQ(v.count(), (Count{3, 3}));
  EXPECT_TRUE(v.of(fleet["n3"].id));
  EXPECT_FALSE(v.of(""));
}

TEST(View, LearnersAndWorkersDoNotVote) {
  FleetBuilder fleet;
  fleet.manager("n1");
  fleet.report();
  auto& members = fleet["n1"].status.services["etcd"].members;
  members.push_back({"x", "n2", "10.0.0.99", "learner", true, false});
  members.push_back({"y", "w1", "10.0.0.98", "worker", true, false});
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{1, 1}));
}

TEST(View, TheFreshestHealthyReportWins) {
  FleetBuilder fleet;
  for (const char* name : {"n1", "n2", "n3"}) fleet.manager(name);
  fleet.report({"n3"}, 100);
  // n3 saw everybody, long ago; n1 and n2 have seen since that n3 is away.
  ServiceStatus& old = fleet["n3"].status.services["etcd"];
  old.healthy = true;
  old.observed = at(50);
  for (const char* name : {"n1", "n2", "n3"})
    old.members.push_back({std::string("etcd-") + name, name, "", "member", true, false});
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{3, 2}));
}

TEST(View, AnOldHealthyReportDoesNotHideNewerSickness) {
  FleetBuilder fleet;
  for (const char* name : {"n1", "n2", "n3"}) fleet.manager(name);
  fleet.report({}, 50);
  for (const char* name : {"n1", "n2"}) {
    ServiceStatus& s = fleet["" + std::string(name)].status.services["etcd"];
    s.healthy = false;
    s.observed = at(100);
  }
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{3, 1}));
}

TEST(View, DisappearedNodesDoNotAnswer) {
  FleetBuilder fleet;
  for (const char* name : {"n1", "n2", "n3"}) fleet.manager(name);
  fleet.report();
  fleet["n2"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).missing(),
            (std::vector<std::string>{"n2"}));
}

// The last one that answers says that the majority is gone; the others said otherwise while they
// were there.
TEST(View, WhatDisappearedNodesSaidDoesNotHideALostMajority) {
  FleetBuilder fleet;
  for (const char* name : {"n1", "n2", "n3"}) fleet.manager(name);
  fleet.report({}, 50);
  fleet.report({"n2", "n3"}, 100);
  fleet["n1"].status.services["etcd"].healthy = false;
  for (const char* name : {"n2", "n3"}) {
    ServiceStatus& s = fleet[name].status.services["etcd"];
    s.healthy = true;
    s.observed = at(50);
    for (Member& m : s.members) m.reachable = true;
    fleet[name].status.presence = Presence::kDisappeared;
  }
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{3, 1}));
}

TEST(View, MembersAreMatchedByIdThenNameThenAddress) {
  FleetBuilder fleet;
  fleet.manager("n1");
  fleet.manager("n2");
  fleet.manager("n3");
  fleet.manager("n4");
  fleet["n4"].spec.addr = "fd00::4";
  ServiceStatus& s = fleet["n1"].status.services["etcd"];
  s.healthy = true;
  s.members = {{"etcd-n1", "renamed", "", "member", true, true},
               {"new-id", "N2", "", "member", true, false},
               {"other", "host", "https://10.0.0.13:2380", "member", true, false},
               {"six", "host6", "[fd00:0::4]:2377", "member", true, false},
               {"who", "$(id)\n", "10.9.9.9", "member", true, false}};
  const View v = observe(fleet.snapshot(), "etcd", by_group);
  EXPECT_EQ(v.count(), (Count{5, 5}));
  for (const char* name : {"n1", "n2", "n3", "n4"}) EXPECT_TRUE(v.of(fleet[name].id)) << name;
  EXPECT_EQ(v.leader(), "n1");
  EXPECT_EQ(v.members[0].name, "\"$(id) \" (unknown here)");
}

TEST(View, WhatAFailedAttemptReportsIsNoCluster) {
  FleetBuilder fleet;
  fleet.manager("n1");
  fleet.report();
  fleet["n1"].status.lifecycle = Lifecycle::kUnallocated;
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{0, 0}));
  fleet["n1"].status.lifecycle = Lifecycle::kProvisioning;
  EXPECT_EQ(observe(fleet.snapshot(), "etcd", by_group).count(), (Count{1, 1}));
}

}  // namespace
}  // namespace clusterctl::fleet
