#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;
using fleet::Presence;

Json drain(std::vector<std::string> nodes) {
  return {{"kind", "drain"}, {"nodes", nodes}};
}

TEST_F(PlanTest, ADrainGoesThroughAManagerThatAnswers) {
  three_managers_one_worker();
  fleet_["m1"].status.presence = Presence::kDisappeared;
  Json body = drain({"w1"});
  body["deadline"] = "2m";
  const Plan p = accepted(body);
  EXPECT_EQ(p.title, "drain w1");
  EXPECT_EQ(stages(p), "drain w1");
  const Stage& s = p.stages[0];
  EXPECT_EQ(s.vars.peer, "m2");
  EXPECT_EQ(s.vars.drain_deadline, 120);
  EXPECT_EQ(s.availability.at(fleet_["w1"].id), Availability::kDrain);
  EXPECT_FALSE(s.restores);
  EXPECT_EQ(p.changes.at(fleet_["w1"].id).availability, Availability::kDrain);
  EXPECT_EQ(p.changes.at(fleet_["w1"].id).host_group, "service-worker");
}

TEST_F(PlanTest, TheOnlyManagerIsDrainedThroughItself) {
  fleet_.manager("m1");
  fleet_.worker("w1");
  fleet_.report();
  const Plan p = accepted(drain({"m1"}));
  EXPECT_EQ(p.stages[0].vars.peer, "");
  EXPECT_TRUE(p.warnings.empty());
  EXPECT_EQ(p.quorum.size(), 0U) << "no majority is asked";
}

TEST_F(PlanTest, ManagersThatAreAllTargetsAreAskedThroughThoseThatAnswer) {
  three_managers_one_worker();
  fleet_["m1"].status.presence = Presence::kDisappeared;
  const Plan p = accepted(drain({"m1", "m2", "m3"}));
  EXPECT_EQ(p.stages[0].vars.peer, "");
  EXPECT_EQ(p.stages[0].vars.managers, (Names{"m2", "m3"}));
}

TEST_F(PlanTest, NobodyIsLeftToTakeTheWork) {
  three_managers_one_worker();
  const Plan p = accepted(drain({"m1", "m2", "m3", "w1"}));
  ASSERT_EQ(p.warnings.size(), 1U);
  EXPECT_EQ(p.warnings[0].code, "no_place");
  fleet_["w1"].status.applied->availability = Availability::kDrain;
  EXPECT_EQ(accepted(drain({"m1", "m2", "m3"})).warnings[0].code, "no_place")
      << "a drained node takes nothing";
}

TEST_F(PlanTest, OnlyWhatServesInASchedulerIsDrained) {
  three_managers_one_worker();
  fleet_.add("n1", "service-worker");
  fleet_.worker("w2").status.lifecycle = Lifecycle::kCancelled;
  fleet_.worker("w3").status.applied->services = {"base", "docker"};
  EXPECT_EQ(refused(drain({"n1", "w2", "w3", "nobody"})),
            (Codes{"no_such_node", "transition", "transition", "no_scheduler"}));
  EXPECT_EQ(refused({{"kind", "activate"}}), (Codes{"no_nodes"}));
  for (const char* m : {"m1", "m2", "m3"}) fleet_[m].status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(drain({"w1"})), (Codes{"no_reachable_manager", "budget"}))
      << "w2 is on its way out: that spends the budget as well";
}

// One rule for everything that takes workers out of use (plan.h, Budget).
TEST_F(PlanTest, ADrainKeepsTheBudget) {
  three_managers_one_worker();
  for (const char* name : {"w2", "w3", "w4"}) fleet_.worker(name);
  const auto with = [&](Names nodes, const char* may) {
    Json body = drain(nodes);
    if (*may) body["max_unavailable"] = may;
    return body;
  };
  EXPECT_EQ(refused(with({"w1"}, "")), Codes{});
  EXPECT_EQ(refused(with({"w1", "w2"}, "")), Codes{"budget"});
  EXPECT_EQ(refused(with({"w1", "w2"}, "2")), Codes{});
  EXPECT_EQ(refused(with({"w1", "w2"}, "50%")), Codes{});
  EXPECT_EQ(refused(with({"m1", "m2"}, "")), Codes{}) << "managers have the rule of majorities";
  // Whatever takes a worker out of use spends it.
  const fleet::Snapshot before = fleet_.snapshot();
  const auto spent = [&](const std::function<void(fleet::Node&)>& how) {
    fleet_.snapshot() = before;
    how(fleet_["w2"]);
    EXPECT_EQ(refused(with({"w1"}, "2")), Codes{});
    return refused(with({"w1"}, ""));
  };
  EXPECT_EQ(spent([](auto& n) { n.status.presence = Presence::kDisappeared; }), Codes{"budget"});
  EXPECT_EQ(spent([](auto& n) { n.status.lifecycle = Lifecycle::kMaintenance; }), Codes{"budget"});
  EXPECT_EQ(spent([](auto& n) { n.status.lifecycle = Lifecycle::kCancelled; }), Codes{"budget"});
  EXPECT_EQ(spent([](auto& n) { n.status.applied->availability = Availability::kDrain; }),
            Codes{"budget"});
  EXPECT_EQ(spent([](auto& n) { n.spec.availability = Availability::kDrain; }), Codes{"budget"})
      << "a drain that is accepted and has not begun";
  EXPECT_EQ(spent([](auto& n) { n.status.services["swarm"].healthy = false; }), Codes{"budget"});
  EXPECT_EQ(spent([](auto& n) { n.status.lifecycle = Lifecycle::kDecommissioned; }), Codes{});
  EXPECT_EQ(spent([](auto& n) { n.spec.availability = Availability::kPause; }), Codes{});
  // One that is away already costs nothing; a job that starts is judged as when it was accepted.
  fleet_.snapshot() = before;
  fleet_["w2"].status.applied->availability = Availability::kDrain;
  EXPECT_EQ(refused(with({"w2"}, "")), Codes{});
  fleet_["w2"].status.applied->availability = Availability::kActive;
  fleet_["w2"].spec.availability = Availability::kDrain;
  EXPECT_EQ(refused(with({"w2"}, "")), Codes{});
  fleet_["w3"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(refused(with({"w2"}, "")), Codes{"budget"}) << "a worker broke meanwhile";
}

TEST_F(PlanTest, ActivateTakesAGroupOrASelector) {
  three_managers_one_worker();
  fleet_.worker("w2").spec.labels["rack"] = "r1";
  EXPECT_EQ(stages(accepted({{"kind", "activate"}, {"host_group", "service-worker"}})),
            "activate w1,w2");
  EXPECT_EQ(stages(accepted({{"kind", "activate"}, {"selector", "rack=r1"}})), "activate w2");
}

TEST_F(PlanTest, FieldsOfRollingWorkAreCheckedForForm) {
  const auto codes = [](const Json& body) {
    std::vector<std::string> out;
    const auto r = parse_request(body);
    if (!r) {
      for (const Problem& p : r.error().problems) out.push_back(p.code);
    }
    return out;
  };
  EXPECT_EQ(codes({{"kind", "commission"}, {"deadline", 5}, {"max_unavailable", 2}}),
            (Codes{"not_for_kind", "not_for_kind"}));
  EXPECT_EQ(codes({{"kind", "activate"}, {"nodes", {"a"}}, {"deadline", 5}}),
            (Codes{"not_for_kind"}));
  EXPECT_EQ(codes({{"kind", "drain"}, {"nodes", {"a"}}, {"vars", {{"x", 1}}}}),
            (Codes{"not_for_kind"}));
  EXPECT_EQ(codes({{"kind", "update"}, {"nodes", {"a"}}, {"host_group", "g"}}),
            (Codes{}));  // the group they get
  for (const Json& bad : {Json(0), Json("0"), Json("101%"), Json("x"), Json("1.5"), Json("-1"),
                          Json("%"), Json(true), Json("5 %")})
    EXPECT_EQ(codes({{"kind", "update"}, {"max_unavailable", bad}}), (Codes{"bad_max_unavailable"}))
        << bad;
  for (const Json& bad : {Json(0),
                          Json("10"
                               "x"),
                          Json("h"), Json("-5m"), Json("8d"), Json("200h"), Json(1.5)})
    EXPECT_EQ(codes({{"kind", "drain"}, {"deadline", bad}}), (Codes{"bad_deadline"})) << bad;
  EXPECT_EQ(codes({{"kind", "update"}, {"max_failures", 0}, {"drain", "maybe"}}),
            (Codes{"bad_max_failures", "unknown_word"}));
  const auto r = parse_request({{"kind", "update"},
                                {"max_unavailable", 3},
                                {"max_failures", 2},
                                {"drain", "never"},
                                {"deadline", "1h"}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->deadline, 3600);
  const auto again = parse_request(to_json(*r));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(*r));
}

}  // namespace
}  // namespace clusterctl::plan
