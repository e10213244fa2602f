#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Lifecycle;
using fleet::Presence;

Json decommission(std::vector<std::string> nodes) {
  return {{"kind", "decommission"}, {"nodes", nodes}};
}
Json dead(std::vector<std::string> nodes) {
  Json out = decommission(nodes);
  out["force"] = out["powered_off"] = true;
  return out;
}
Json forced(std::vector<std::string> nodes) {
  Json out = decommission(nodes);
  out["force"] = true;
  return out;
}

TEST_F(PlanTest, AWorkerLeaves) {
  three_managers_one_worker();
  Json body = decommission({"w1"});
  body["level"] = "packages";
  const Plan p = accepted(body);
  EXPECT_EQ(p.title, "decommission w1");
  EXPECT_EQ(stages(p), "cleanup w1");
  const Stage& s = p.stages[0];
  EXPECT_EQ(s.vars.leaving, Names{"w1"});
  EXPECT_EQ(s.vars.peer, "m1");
  EXPECT_EQ(s.vars.managers, (Names{"m1", "m2", "m3"}));
  EXPECT_EQ(s.vars.cleanup_level, "packages");
  EXPECT_EQ(s.vars.endpoint, "10.0.0.200");
  EXPECT_EQ(names(s.peers), (Names{"m1", "m2", "m3"}));
  EXPECT_FALSE(p.cleanup);
}

TEST_F(PlanTest, AManagerLeaves) {
  three_managers_one_worker();
  const Plan p = accepted(decommission({"m1"}));
  EXPECT_EQ(stages(p), "observe m1,m2,m3; cleanup m1; observe m2,m3");
  EXPECT_EQ(p.stages[1].vars.peer, "m2");
  EXPECT_EQ(p.stages[1].vars.managers, (Names{"m2", "m3"}));
  EXPECT_EQ(names(p.stages[1].peers), (Names{"m2", "m3"}));
  EXPECT_EQ(p.quorum.at("swarm").total_after, 2);
  EXPECT_EQ(p.quorum.at("swarm").tolerates_after, 0);
}

TEST_F(PlanTest, WorkersGoBeforeManagersAndManagersOneByOne) {
  three_managers_one_worker();
  for (const char* name : {"m4", "m5"}) fleet_.manager(name);
  fleet_.report();
  const Plan p = accepted(decommission({"m2", "w1", "m1"}));
  EXPECT_EQ(stages(p), "observe m1,m2,m3,m4,m5; cleanup w1,m2,m1; observe m3,m4,m5");
  EXPECT_TRUE(p.stages[1].one_by_one);
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
}

TEST_F(PlanTest, NotWhenTheMajorityWouldBeLost) {
  three_managers_one_worker();
  fleet_.report({"m3"});
  EXPECT_EQ(refused(decommission({"m1"})), (Codes{"quorum", "quorum"}));
  const auto p = plan(decommission({"m1"}));
  EXPECT_EQ(p.error().code, Code::kConflict);
  EXPECT_NE(p.error().line().find("etcd has 3 members, 2 of them answer (not m3)"),
            std::string::npos)
      << p.error().line();
  EXPECT_NE(p.error().hint.find("clusterctl node decommission m3"), std::string::npos);
  EXPECT_EQ(refused(forced({"m1"})), (Codes{"quorum", "quorum"}))
      << "force does not make a majority";
}

TEST_F(PlanTest, SeveralManagersAreReckonedOneAfterTheOther) {
  for (const char* name : {"m1", "m2", "m3", "m4", "m5"}) fleet_.manager(name);
  fleet_.worker("w1");
  fleet_.report();
  EXPECT_EQ(refused(decommission({"m1", "m2", "m3", "m4"})), Codes{});
  fleet_.report({"m5"});
  EXPECT_EQ(refused(decommission({"m1", "m2"})), Codes{}) << "5/4, 4/3, 3/2";
  EXPECT_EQ(refused(decommission({"m1", "m2", "m3"})), (Codes{"quorum", "quorum"}));
  EXPECT_EQ(refused(decommission({"m5", "m1", "m2"})), Codes{})
      << "5/4, 4/3, 3/2, and m5 without a loss";
}

TEST_F(PlanTest, TheLastManagerStaysWhileAnyNodeNeedsIt) {
  fleet_.manager("m1");
  fleet_.worker("w1").status.presence = Presence::kDisappeared;
  fleet_.worker("w2");
  fleet_.report();
  const auto p = plan(decommission({"m1"}));
  ASSERT_FALSE(p);
  EXPECT_EQ(refused(decommission({"m1"})), Codes{"last_manager"});
  EXPECT_NE(p.error().message.find("w1, w2"), std::string::npos)
      << "reachable or not: " << p.error().message;
  const Plan q = accepted(forced({"m1"}));
  EXPECT_EQ(stages(q), "cleanup m1");
  EXPECT_EQ(q.warnings[0].code, "last_manager");
  fleet_["w1"].status.presence = Presence::kDiscovered;
  EXPECT_EQ(stages(accepted(decommission({"m1", "w1", "w2"}))), "cleanup w1,w2,m1")
      << "all in one request";
}

TEST_F(PlanTest, EverythingInOneRequestIsAllowedInAnyState) {
  three_managers_one_worker();
  fleet_.report({"m2", "m3"});
  const Plan p = accepted(decommission({"m1", "m2", "m3", "w1"}));
  EXPECT_EQ(stages(p), "cleanup w1,m1,m2,m3");
  EXPECT_EQ(p.stages[0].vars.peer, "");
  EXPECT_TRUE(p.stages[0].vars.managers.empty());
  EXPECT_EQ(p.quorum.at("etcd").total_after, 0);
}

TEST_F(PlanTest, ADeadNodeNeedsForceAndIsNeverTouched) {
  three_managers_one_worker();
  fleet_["m3"].status.presence = Presence::kDisappeared;
  const auto without = plan(decommission({"m3"}));
  EXPECT_EQ(refused(decommission({"m3"})), Codes{"unreachable"});
  EXPECT_NE(
      without.error().hint.find("clusterctl node decommission m3 --force --i-have-powered-it-off"),
      std::string::npos);
  EXPECT_EQ(refused(forced({"m3"})), Codes{"unreachable"})
      << "force alone does not say that it is off";
  const Plan p = accepted(dead({"m3"}));
  EXPECT_TRUE(p.powered_off);
  EXPECT_EQ(stages(p), "observe m1,m2; forget m1; observe m1,m2");
  for (const Stage& s : p.stages) {
    for (const auto& list : {s.nodes, s.peers})
      EXPECT_EQ(std::count(list.begin(), list.end(), fleet_["m3"].id), 0) << s.name;
    EXPECT_EQ(s.services.count(fleet_["m3"].id), 0u);
  }
  const Stage& forget = *stage(p, "forget");
  EXPECT_EQ(forget.vars.peer, "m1");
  ASSERT_EQ(forget.vars.lost.size(), 1u);
  EXPECT_EQ(forget.vars.lost[0].name, "m3");
  EXPECT_EQ(forget.vars.lost[0].ids,
            (std::map<std::string, std::string>{{"etcd", "etcd-m3"}, {"swarm", "swarm-m3"}}));
  EXPECT_EQ(names(p.targets), Names{"m3"});
  EXPECT_EQ(p.quorum.at("etcd").total_after, 2);
}

TEST_F(PlanTest, ADeadNodeDoesNotCountWhateverWasSeenLast) {
  three_managers_one_worker();  // all three were seen to answer
  EXPECT_EQ(refused(dead({"m2", "m3"})), (Codes{"quorum", "quorum"}));
  Plan p = accepted(dead({"m3"}));
  EXPECT_EQ(p.warnings[0].code, "was_seen");
  fleet_.report({"m2"});
  EXPECT_EQ(refused(dead({"m3"})), (Codes{"quorum", "quorum"})) << "only m1 of three would answer";
}

TEST_F(PlanTest, ADeadWorkerIsForgottenThroughAManager) {
  three_managers_one_worker();
  fleet_["w1"].status.presence = Presence::kDisappeared;
  const Plan p = accepted(dead({"w1"}));
  EXPECT_EQ(stages(p), "forget m1");
  EXPECT_EQ(p.stages[0].vars.lost[0].ids,
            (std::map<std::string, std::string>{{"swarm", "swarm-w1"}}));
}

TEST_F(PlanTest, WhenNothingIsLeftThereIsNothingToForget) {
  fleet_.manager("m1").status.presence = Presence::kDisappeared;
  fleet_.report();
  const Plan p = accepted(dead({"m1"}));
  EXPECT_EQ(stages(p), "");
  EXPECT_TRUE(p.powered_off);
  fleet_.worker("w1");
  EXPECT_EQ(refused(dead({"m1"})), Codes{}) << "force: the cluster is gone anyway";
}

TEST_F(PlanTest, StatesThatCanBeDecommissioned) {
  three_managers_one_worker();
  fleet_.add("n", "service-worker");
  for (const auto& [l, name] : fleet::Words<Lifecycle>::kTable) {
    fleet_["n"].status.lifecycle = l;
    const bool fine = l != Lifecycle::kUnallocated && l != Lifecycle::kDecommissioned;
    EXPECT_EQ(refused(decommission({"n"})), fine ? Codes{} : Codes{"transition"}) << name;
  }
}

TEST_F(PlanTest, HalfMadeNodesAreCleanedOfEverything) {
  three_managers_one_worker();
  fleet_.add("n", "service-worker").status.lifecycle = Lifecycle::kProvisioning;
  const Plan p = accepted(decommission({"n"}));
  EXPECT_EQ(stages(p), "cleanup n");
  EXPECT_EQ(p.stages[0].services.at(fleet_["n"].id),
            (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
}

TEST_F(PlanTest, AHalfRemovedManagerAgainOrByForce) {
  three_managers_one_worker();
  fleet_["m3"].status.lifecycle = Lifecycle::kCancelled;
  set_condition(fleet_["m3"].status, fleet::condition::kNotCleaned, "x", "j", fleet::at(1));
  EXPECT_EQ(stages(accepted(decommission({"m3"}))), "observe m1,m2,m3; cleanup m3; observe m1,m2");
  EXPECT_EQ(stages(accepted(dead({"m3"}))), "observe m1,m2; forget m1; observe m1,m2");
}

TEST_F(PlanTest, NodesMustBeNamed) {
  three_managers_one_worker();
  EXPECT_EQ(refused({{"kind", "decommission"}}), Codes{"no_nodes"});
  EXPECT_EQ(refused(decommission({"zz"})), Codes{"no_such_node"});
  fleet_["w1"].spec.labels = {{"rack", "1"}};
  EXPECT_EQ(names(accepted({{"kind", "decommission"}, {"selector", "rack=1"}}).targets),
            Names{"w1"});
  EXPECT_EQ(refused({{"kind", "decommission"}, {"selector", "rack=2"}}), Codes{"no_nodes"});
}

TEST_F(PlanTest, NobodyAnswersToRemoveItThrough) {
  three_managers_one_worker();
  for (const char* name : {"m1", "m2", "m3"}) fleet_[name].status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(decommission({"w1"})), Codes{"no_reachable_manager"});
}

TEST_F(PlanTest, ObservedAgainBeforeAManagerLeaves) {
  three_managers_one_worker();
  const Request r = request(decommission({"m1"}));
  const Plan p = *make_plan(fleet_.snapshot(), catalog_, r);
  fleet_["m1"].status.lifecycle = Lifecycle::kCancelled;
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, r, p));
  fleet_["m3"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(recheck_quorum(fleet_.snapshot(), catalog_, r, p).error().reason, "quorum_lost");
  const Request d = request(dead({"m3"}));
  const Plan q = *make_plan(fleet_.snapshot(), catalog_, d);
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, d, q));
  fleet_["m2"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(recheck_quorum(fleet_.snapshot(), catalog_, d, q).error().reason, "quorum_lost");
}

// A job record keeps the request; that the nodes are off follows from it.
TEST_F(PlanTest, WhatIsOffDoesNotAnswerWhateverTheObservationSays) {
  for (const char* name : {"m1", "m2", "m3", "m4", "m5"}) fleet_.manager(name);
  fleet_.worker("w1");
  fleet_.report();
  const Request r = request(dead({"m4", "m5"}));
  Plan p = *make_plan(fleet_.snapshot(), catalog_, r);
  p.powered_off = false;
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, r, p));
  fleet_.report({"m3"}, 200);
  EXPECT_EQ(recheck_quorum(fleet_.snapshot(), catalog_, r, p).error().reason, "quorum_lost");
}

}  // namespace
}  // namespace clusterctl::plan
