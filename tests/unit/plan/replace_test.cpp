// replace: both halves as one plan, in the order that the members allow.
#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Lifecycle;
using fleet::Presence;

class ReplaceTest : public PlanTest {
 protected:
  void fleet(int managers, int workers) {
    for (int i = 1; i <= managers; ++i) fleet_.manager("m" + std::to_string(i));
    for (int i = 1; i <= workers; ++i) fleet_.worker("w" + std::to_string(i));
    fleet_.add("new");
    fleet_.report();
  }
  void dies(const std::string& name) {
    fleet_.report({name}, 200);
    fleet_[name].status.presence = Presence::kDisappeared;
  }
  std::string steps(const Plan& p) {
    std::string out;
    for (const Stage& s : p.stages) {
      out += (out.empty() ? "" : "; ") + std::to_string(s.batch) + " " + s.name;
      for (const std::string& id : s.nodes) out += " " + fleet_.snapshot().nodes.at(id).name;
    }
    return out;
  }
  static Json replace(const std::string& old, const std::string& with, bool dead = false) {
    Json out{{"kind", "replace"}, {"nodes", {old}}, {"with", with}};
    if (dead) out["force"] = out["powered_off"] = true;
    return out;
  }
};

TEST_F(ReplaceTest, ALiveManagerLeavesWhenTheNewOneIsVerified) {
  fleet(3, 1);
  const Plan p = accepted(replace("m2", "new"));
  EXPECT_EQ(p.title, "replace m2 with new");
  EXPECT_EQ(steps(p),
            "0 check new; 1 observe m1 m2 m3; 1 site new; 1 verify new; "
            "2 observe m1 m2 m3 new; 2 cleanup m2; 2 observe m1 m3 new");
  EXPECT_EQ(names(p.targets), (Names{"new", "m2"}));
  EXPECT_EQ(p.parts.at(fleet_["new"].id), "commission");
  EXPECT_EQ(p.parts.at(fleet_["m2"].id), "decommission");
  EXPECT_EQ(stage(p, "site")->vars.managers, (Names{"m1", "m2", "m3", "new"}));
  EXPECT_EQ(stage(p, "cleanup")->vars.managers, (Names{"m1", "m3", "new"}));
  EXPECT_EQ(p.quorum.at("etcd").total_before, 3);
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
  for (const Problem& w : p.warnings) EXPECT_NE(w.code, "less_tolerance") << w.message;
}

TEST_F(ReplaceTest, APlaceIsGivenUpOnce) {
  fleet(3, 1);
  fleet::Node& old = fleet_.add("old", "service-master");
  old.status.lifecycle = Lifecycle::kDecommissioned;
  EXPECT_EQ(refused(replace("old", "new")), Codes{}) << "it has left, nobody came: goes on";
  set_condition(old.status, fleet::condition::kReplaced, "m3 has its place", "j", fleet::at(1));
  EXPECT_EQ(refused(replace("old", "new")), Codes{"replaced"});
  EXPECT_EQ(plan(replace("old", "new")).error().problems[0].message,
            "old has left, and m3 has its place");
}

TEST_F(ReplaceTest, ADeadManagerGoesFirstBecauseNobodyIsAddedWhileAMemberIsMissing) {
  fleet(3, 1);
  dies("m2");
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"new"}}, {"host_group", "service-master"}}),
            (Codes{"quorum", "quorum"}));
  const Plan p = accepted(replace("m2", "new", true));
  EXPECT_EQ(steps(p).substr(0, 41), "0 check new; 1 observe m1 m3; 1 forget m1");
  EXPECT_NE(steps(p).find("2 site new; 2 verify new"), std::string::npos) << steps(p);
  const Stage* forget = stage(p, "forget");
  EXPECT_EQ(forget->about, (Names{fleet_["m2"].id}));
  EXPECT_EQ(forget->vars.lost[0].name, "m2");
  EXPECT_EQ(stage(p, "site")->vars.managers, (Names{"m1", "m3", "new"}));
  for (const Stage& s : p.stages) {
    EXPECT_EQ(std::count(s.nodes.begin(), s.nodes.end(), fleet_["m2"].id), 0) << s.name;
    EXPECT_EQ(std::count(s.peers.begin(), s.peers.end(), fleet_["m2"].id), 0) << s.name;
  }
  EXPECT_EQ(p.quorum.at("etcd").total_before, 3);
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
}

TEST_F(ReplaceTest, WithoutTheWordsADeadOneIsRefusedWithTheWayToSayThem) {
  fleet(3, 1);
  dies("m2");
  const auto p = plan(replace("m2", "new"));
  ASSERT_FALSE(p);
  std::string hints;
  for (const Problem& problem : p.error().problems) hints += problem.hint + "\n";
  EXPECT_NE(hints.find("clusterctl node replace m2 --with new --force --i-have-powered-it-off"),
            std::string::npos)
      << hints;
}

TEST_F(ReplaceTest, AWorkerAndTheOnlyManager) {
  fleet(1, 1);
  EXPECT_EQ(steps(accepted(replace("w1", "new"))),
            "0 check new; 1 site new; 1 verify new; 2 cleanup w1");
  EXPECT_EQ(steps(accepted(replace("m1", "new"))),
            "0 check new; 1 observe m1; 1 site new; 1 verify new; 2 observe m1 new; 2 cleanup m1; "
            "2 observe new");
  dies("m1");
  EXPECT_EQ(refused(replace("m1", "new", true)), (Codes{"no_survivor"}));
}

TEST_F(ReplaceTest, TheNewNodeGetsWhatTheOldOneHad) {
  fleet(3, 1);
  fleet_["w1"].spec.availability = fleet::Availability::kPause;
  fleet_["w1"].spec.labels = {{"tier", "gold"}, {"rack", "r1"}};
  fleet_["w1"].spec.vars = {{"a", 1}, {"b", 1}};
  fleet_["new"].spec.labels = {{"rack", "r2"}};
  fleet_["new"].spec.vars = {{"b", 2}};
  Json body = replace("w1", "new");
  SpecChange wish = accepted(body).changes.at(fleet_["new"].id);
  EXPECT_EQ(wish.host_group, "service-worker");
  EXPECT_EQ(wish.availability, fleet::Availability::kPause);
  EXPECT_EQ(*wish.labels, (std::map<std::string, std::string>{{"tier", "gold"}, {"rack", "r2"}}));
  EXPECT_FALSE(wish.vars) << "variables belong to the machine, unless asked for";
  body["take_vars"] = true;
  wish = accepted(body).changes.at(fleet_["new"].id);
  EXPECT_EQ(*wish.vars, (Json{{"a", 1}, {"b", 2}}));
}

TEST_F(ReplaceTest, GoingOnTakesOnlyTheHalfThatIsLeft) {
  fleet(3, 1);
  // The new one is there, the old one could not be cleaned.
  fleet::Node& n = fleet_.worker("new2");
  n.spec.host_group = "service-worker";
  fleet_["w1"].status.lifecycle = Lifecycle::kCancelled;
  EXPECT_EQ(steps(accepted(replace("w1", "new2"))), "1 cleanup w1");
  // The old one has left, the new one failed.
  fleet_["w1"].status.lifecycle = Lifecycle::kDecommissioned;
  fleet_["w1"].status.applied.reset();
  EXPECT_EQ(steps(accepted(replace("w1", "new"))), "0 check new; 1 site new; 1 verify new");
  EXPECT_EQ(refused(replace("w1", "new2")), (Codes{"replaced"}));
}

TEST_F(ReplaceTest, RefusalsListAllReasons) {
  fleet(3, 2);
  EXPECT_EQ(refused(replace("m1", "m1")), (Codes{"same_node"}));
  EXPECT_EQ(refused(replace("m1", "w1")), (Codes{"in_use"}));
  EXPECT_EQ(refused(replace("none", "nobody")).size(), 2u);
  EXPECT_FALSE(parse_request({{"kind", "replace"}, {"nodes", {"m1"}}}));
  EXPECT_FALSE(parse_request({{"kind", "replace"}, {"nodes", {"m1", "m2"}}, {"with", "new"}}));
  EXPECT_FALSE(parse_request({{"kind", "update"}, {"nodes", {"m1"}}, {"with", "new"}}));
  dies("m2");
  EXPECT_EQ(refused(replace("m1", "new")), (Codes{"quorum", "quorum"}))
      << "the new one may not be added while a member is missing";
}

}  // namespace
}  // namespace clusterctl::plan
