// promote, demote, update of group and capabilities, pause; and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;
using fleet::Presence;
using fleet::Role;

class ReassignTest : public PlanTest {
 protected:
  void fleet(int managers, int workers) {
    for (int i = 1; i <= managers; ++i) fleet_.manager("m" + std::to_string(i));
    for (int i = 1; i <= workers; ++i) fleet_.worker("w" + std::to_string(i));
    fleet_.report();
  }
  // "0 check w1; 1 site w1(base docker)"
  std::string steps(const std::vector<Stage>& stages) {
    std::string out;
    for (const Stage& s : stages) {
      out += (out.empty() ? "" : "; ") + std::to_string(s.batch) + " " + s.name;
      for (const std::string& id : s.nodes) out += " " + fleet_.snapshot().nodes.at(id).name;
      if (s.as_before) out += " as before";
    }
    return out;
  }
  std::vector<std::string> services(const Plan& p, const std::string& stage_name,
                                    const std::string& node) {
    const Stage* s = stage(p, stage_name);
    return s ? s->services.at(fleet_[node].id) : std::vector<std::string>{"no such stage"};
  }
  static Json ask(const std::string& kind, std::vector<std::string> nodes) {
    return {{"kind", kind}, {"nodes", std::move(nodes)}};
  }
};

TEST_F(ReassignTest, PromoteIsOrderedAndNamesTheNewMemberOnlyWhenItJoins) {
  fleet(3, 2);
  const Plan p = accepted(ask("promote", {"w1"}));
  EXPECT_EQ(p.title, "promote w1 to service-master");
  EXPECT_EQ(steps(p.stages),
            "0 check w1; 0 observe m1 m2 m3; 1 site w1; 1 verify w1; 0 observe m1 m2 m3 w1");
  EXPECT_EQ(services(p, "site", "w1"), (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
  EXPECT_EQ(stage(p, "site")->vars.managers, (Names{"m1", "m2", "m3", "w1"}));
  EXPECT_EQ(stage(p, "site")->vars.initiator, "");
  EXPECT_NE(stage(p, "site")->vars.peer, "w1");
  const SpecChange& wish = p.changes.at(fleet_["w1"].id);
  EXPECT_EQ(wish.host_group, "service-master");
  EXPECT_TRUE(wish.capabilities.empty()) << "those of the group";
  EXPECT_EQ(p.quorum.at("etcd").total_after, 4);
  EXPECT_EQ(p.roles.at(fleet_["w1"].id), Role::kManager) << "it takes the lock of the managers";
}

TEST_F(ReassignTest, WhatAPromotionThatFailsIsPutBackBy) {
  fleet(3, 1);
  const Plan p = accepted(ask("promote", {"w1"}));
  const auto& back = p.put_back.at(fleet_["w1"].id);
  EXPECT_EQ(steps(back), "0 put-back w1 as before; 0 cleanup w1; 0 observe m1 m2 m3");
  EXPECT_EQ(back[0].playbook, "site.yml");
  EXPECT_EQ(back[0].vars.only_services, (Names{"swarm"})) << "its part in the majority goes first";
  EXPECT_EQ(back[0].vars.managers, (Names{"m1", "m2", "m3"}));
  EXPECT_EQ(back[1].services.at(fleet_["w1"].id), (Names{"etcd", "ucarp"})) << "only what it got";
  EXPECT_EQ(back[1].vars.leaving, (Names{"w1"}));
}

TEST_F(ReassignTest, DemoteGivesUpThePartBeforeItsServicesAreCleanedWithTheOldRole) {
  fleet(3, 1);
  const Plan p = accepted(ask("demote", {"m2"}));
  EXPECT_EQ(steps(p.stages),
            "0 check m2; 0 observe m1 m2 m3; 1 step-down m2; 1 cleanup m2 as before; 1 site m2; "
            "1 verify m2; 0 observe m1 m3");
  EXPECT_EQ(stage(p, "step-down")->playbook, "site.yml");
  EXPECT_EQ(stage(p, "step-down")->vars.only_services, (Names{"swarm"}));
  EXPECT_EQ(services(p, "cleanup", "m2"), (Names{"etcd", "ucarp"}));
  EXPECT_EQ(stage(p, "cleanup")->vars.leaving, (Names{"m2"}));
  EXPECT_EQ(services(p, "site", "m2"), (Names{"base", "docker", "swarm"}));
  for (const char* name : {"step-down", "cleanup", "site", "verify"}) {
    EXPECT_EQ(stage(p, name)->vars.managers, (Names{"m1", "m3"})) << name;
    EXPECT_NE(stage(p, name)->vars.peer, "m2") << name;
    EXPECT_FALSE(stage(p, name)->vars.peer.empty()) << name;
  }
  const auto& back = p.put_back.at(fleet_["m2"].id);
  EXPECT_EQ(steps(back), "0 put-back m2 as before; 0 observe m1 m3");
  EXPECT_TRUE(back[0].vars.only_services.empty());
  EXPECT_EQ(back[0].vars.managers, (Names{"m1", "m2", "m3"}));
  ASSERT_FALSE(p.warnings.empty());
  EXPECT_EQ(p.warnings[0].code, "less_tolerance");
}

TEST_F(ReassignTest, SeveralNodesGoOneAfterAnotherThroughWhatTheEarlierOnesBecame) {
  fleet(3, 2);
  const Plan p = accepted(ask("promote", {"w1", "w2"}));
  EXPECT_EQ(steps(p.stages),
            "0 check w1 w2; 0 observe m1 m2 m3; 1 site w1; 1 verify w1; "
            "2 observe m1 m2 m3 w1; 2 site w2; 2 verify w2; 0 observe m1 m2 m3 w1 w2");
  const Stage& last = p.stages[5];
  EXPECT_EQ(last.services.at(fleet_["w1"].id), (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
  EXPECT_EQ(last.vars.managers, (Names{"m1", "m2", "m3", "w1", "w2"}));
  EXPECT_EQ(names(last.peers), (Names{"m1", "m2", "m3", "w1"}));
}

TEST_F(ReassignTest, TheLastManagerStaysAlsoAsPartOfAGroup) {
  fleet(3, 1);
  EXPECT_EQ(refused(ask("demote", {"m1", "m2", "m3"})), (Codes{"last_manager"}));
  Json update = ask("update", {"m1", "m2", "m3"});
  update["host_group"] = "service-worker";
  EXPECT_EQ(refused(update), (Codes{"last_manager"}));
  EXPECT_TRUE(plan(ask("demote", {"m1", "m2"}))) << dump(plan(ask("demote", {"m1", "m2"})));
}

TEST_F(ReassignTest, TheQuorumRulesOfAddingAndRemovingHold) {
  fleet(3, 1);
  fleet_.report({"m3"}, 200);
  fleet_["m3"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(ask("promote", {"w1"})), (Codes{"quorum", "quorum"})) << "a member is missing";
  Json forced = ask("promote", {"w1"});
  forced["force"] = true;
  EXPECT_TRUE(plan(forced));
  EXPECT_EQ(refused(ask("demote", {"m2"})), (Codes{"quorum", "quorum"}))
      << "one of two would answer";
  fleet_.report({}, 300);
  fleet_["m3"].status.presence = Presence::kDiscovered;
  EXPECT_TRUE(plan(ask("demote", {"m2"})));
}

TEST_F(ReassignTest, RefusalsNameTheWayOn) {
  fleet(3, 2);
  fleet_.add("u1");
  fleet_.add("d1").status.lifecycle = Lifecycle::kDecommissioned;
  fleet_["w2"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(ask("promote", {"m1", "u1", "d1", "w2"})),
            (Codes{"has_role", "transition", "transition", "unreachable"}));
  EXPECT_EQ(refused(ask("demote", {"w1"})), (Codes{"has_role"}));
  Json group = ask("promote", {"w1"});
  group["host_group"] = "service-worker";
  EXPECT_EQ(refused(group), (Codes{"wrong_role"}));
  group["host_group"] = "service-mister";
  EXPECT_EQ(refused(group), (Codes{"unknown_group"}));
  fleet_["w1"].status.applied->capabilities = {"dtr-replica"};
  EXPECT_EQ(refused(ask("promote", {"w1"})), (Codes{"carries_registry"}));
}

TEST_F(ReassignTest, UpdateOfTheGroupDoesTheSame) {
  fleet(3, 1);
  Json body = ask("update", {"m2"});
  body["host_group"] = "service-worker";
  EXPECT_EQ(steps(accepted(body).stages), steps(accepted(ask("demote", {"m2"})).stages));
  body = ask("update", {"w1"});
  body["host_group"] = "service-master";
  EXPECT_EQ(steps(accepted(body).stages), steps(accepted(ask("promote", {"w1"})).stages));
  EXPECT_EQ(accepted(body).kind, "update");
}

TEST_F(ReassignTest, UpdateOfCapabilitiesCleansWhatIsLostAndMakesWhatIsGained) {
  catalog_ = *catalog::Catalog::parse_text(R"(
host_groups:
  service-master: {manager: true, capabilities: [ucp-controller]}
  service-worker: {manager: false, capabilities: [service-worker]}
services:
  base: {on: all}
  docker: {on: all, needs: [base]}
  etcd: {on: {role: manager}, needs: [base], quorum: members}
  swarm: {on: all, needs: [docker], quorum: members, schedules: true}
  volumes: {on: {capability: [storage]}, needs: [docker]}
)",
                                           "test catalog");
  fleet(3, 1);
  Json body = ask("update", {"w1"});
  body["capabilities"] = {"storage"};
  Plan p = accepted(body);
  EXPECT_EQ(steps(p.stages), "0 check w1; 0 observe m1 m2 m3; 1 site w1; 1 verify w1");
  EXPECT_EQ(services(p, "site", "w1"), (Names{"base", "docker", "swarm", "volumes"}));
  EXPECT_EQ(p.changes.at(fleet_["w1"].id).capabilities, (Names{"storage"}));
  fleet_["w1"].status.applied->capabilities = {"storage"};
  fleet_["w1"].status.applied->services = {"base", "docker", "swarm", "volumes"};
  body["capabilities"] = {"service-worker"};
  p = accepted(body);
  EXPECT_EQ(steps(p.stages),
            "0 check w1; 0 observe m1 m2 m3; 1 cleanup w1 as before; 1 site w1; 1 verify w1");
  EXPECT_EQ(services(p, "cleanup", "w1"), (Names{"volumes"}));
}

TEST_F(ReassignTest, TheRulesOfPlacementHoldForTheNewPlace) {
  fleet(3, 1);
  Json body = ask("update", {"w1"});
  body["capabilities"] = {"dtr-controller", "ucp-controller"};
  const Codes codes = refused(body);
  EXPECT_NE(std::find(codes.begin(), codes.end(), "ucp_with_dtr"), codes.end());
}

TEST_F(ReassignTest, AGroupWithoutNamesStillOnlySelects) {
  fleet(3, 1);
  Json body{{"kind", "update"}, {"host_group", "service-worker"}};
  const Plan p = accepted(body);
  EXPECT_EQ(names(p.targets), (Names{"w1"}));
  EXPECT_TRUE(p.changes.empty());
  const Request pinned_request = pinned(request(body), p, fleet_.snapshot());
  EXPECT_FALSE(reassigns(pinned_request)) << "it must not become a change of the group";
}

TEST_F(ReassignTest, ARequestIsPlannedTheSameWhenItsTurnComes) {
  fleet(3, 1);
  Json group = ask("update", {"w1"}), capabilities = ask("update", {"w1"});
  group["host_group"] = "service-master";
  capabilities["capabilities"] = {"service-worker"};
  for (const Json& body : {ask("promote", {"w1"}), ask("demote", {"m1"}), group, capabilities}) {
    const Plan p = accepted(body);
    const Request kept = *parse_request(to_json(pinned(request(body), p, fleet_.snapshot())));
    const auto again = make_plan(fleet_.snapshot(), catalog_, kept);
    ASSERT_TRUE(again) << body << again.error().line();
    EXPECT_EQ(steps(again->stages), steps(p.stages)) << body;
    EXPECT_EQ(again->changes, p.changes) << body;
  }
}

TEST_F(ReassignTest, TheSameRulesOnceMoreAfterTheObservation) {
  fleet(3, 1);
  const Request r = request(ask("demote", {"m2"}));
  const Plan p = accepted(ask("demote", {"m2"}));
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, r, p));
  fleet_.report({"m3"}, 200);
  const auto lost = recheck_quorum(fleet_.snapshot(), catalog_, r, p);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().reason, "quorum_lost");
}

TEST_F(ReassignTest, PauseIsSetThroughAManager) {
  fleet(3, 1);
  const Plan p = accepted(ask("pause", {"w1"}));
  ASSERT_EQ(p.stages.size(), 1u);
  EXPECT_EQ(p.stages[0].playbook, "availability.yml");
  EXPECT_EQ(p.stages[0].availability.at(fleet_["w1"].id), Availability::kPause);
  EXPECT_EQ(p.changes.at(fleet_["w1"].id).availability, Availability::kPause);
}

}  // namespace
}  // namespace clusterctl::plan
