#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

TEST_F(PlanTest, CheckTakesAnyAcceptedNode) {
  three_managers_one_worker();
  fleet_.add("n");
  fleet_.add("p").spec.acceptance = fleet::Acceptance::kPending;
  EXPECT_EQ(names(accepted({{"kind", "check"}}).targets), (Names{"m1", "m2", "m3", "n", "w1"}));
  EXPECT_EQ(refused({{"kind", "check"}, {"nodes", {"p"}}}), Codes{"not_accepted"});
  EXPECT_EQ(refused({{"kind", "check"}, {"nodes", {"n"}}, {"host_group", "x"}}),
            Codes{"unknown_group"});
  const Plan p = accepted({{"kind", "check"}, {"nodes", {"n"}}, {"host_group", "service-master"}});
  EXPECT_EQ(stages(p), "check n");
  EXPECT_EQ(p.title, "check n");
  EXPECT_EQ(p.stages[0].services.at(fleet_["n"].id),
            (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
  EXPECT_EQ(p.roles.at(fleet_["n"].id), fleet::Role::kManager);
  EXPECT_EQ(accepted({{"kind", "check"}, {"nodes", {"n"}}}).stages[0].services.at(fleet_["n"].id),
            (Names{"base", "docker", "swarm"}));
}

TEST_F(PlanTest, VerifyTakesWhatWasVerifiedOnce) {
  three_managers_one_worker();
  fleet_.add("n");
  const Plan p = accepted({{"kind", "verify"}});
  EXPECT_EQ(stages(p), "verify m1,m2,m3,w1");
  EXPECT_EQ(p.stages[0].vars.managers, (Names{"m1", "m2", "m3"}));
  EXPECT_EQ(p.stages[0].vars.peer, "");
  EXPECT_EQ(accepted({{"kind", "verify"}, {"nodes", {"w1"}}}).stages[0].vars.peer, "m1");
  EXPECT_EQ(names(accepted({{"kind", "verify"}, {"host_group", "service-worker"}}).targets),
            Names{"w1"});
  EXPECT_EQ(refused({{"kind", "verify"}, {"nodes", {"n"}}}), Codes{"transition"});
  EXPECT_EQ(refused({{"kind", "verify"}, {"host_group", "x"}}), Codes{"no_nodes"});
}

TEST_F(PlanTest, ObserveTakesAllManagers) {
  EXPECT_EQ(plan({{"kind", "observe"}}).error().code, Code::kNotFound);
  three_managers_one_worker();
  EXPECT_EQ(stages(accepted({{"kind", "observe"}})), "observe m1,m2,m3");
  EXPECT_EQ(plan({{"kind", "observe"}, {"nodes", {"m1"}}}).error().reason, "not_for_kind");
  EXPECT_EQ(accepted({{"kind", "observe"}}).quorum.at("swarm").tolerates_after, 1);
}

TEST_F(PlanTest, AnEmptyFleetHasNothingToDo) {
  for (const char* kind : {"check", "verify", "observe"}) {
    const auto p = plan({{"kind", kind}});
    ASSERT_FALSE(p) << kind;
    EXPECT_EQ(p.error().code, Code::kNotFound) << kind;
  }
}

TEST_F(PlanTest, VariablesFromLowToHigh) {
  fleet::Node& n = fleet_.add("n", "service-worker");
  fleet_.snapshot().globals = {{"a", "global"},
                               {"level", "global"},
                               {"vip_provider", "external"},
                               {"nested", {{"x", 1}, {"y", 2}}}};
  n.spec.vars = {
      {"a", "node"}, {"nested", {{"x", 3}}}, {"flag", false}, {"docker_version", "from vars"}};
  n.spec.versions = {{"docker", "20.10"}, {"nothing", "1"}};
  const Json vars = effective_vars(fleet_.snapshot(), catalog_, n, "service-worker",
                                   {{"b", "request"}, {"flag", 0}});
  EXPECT_EQ(vars, (Json{{"a", "node"},
                        {"b", "request"},
                        {"level", "group"},
                        {"from_group", 1},
                        {"vip_provider", "external"},
                        {"scheduler_provider", "swarm-mode"},
                        {"nested", {{"x", 3}}},
                        {"flag", 0},
                        {"docker_version", "20.10"}}));
  EXPECT_EQ(effective_vars(fleet_.snapshot(), catalog_, n, "service-master")["level"], "global");
}

TEST_F(PlanTest, TheFingerprintCoversWhatTheOperatorSet) {
  fleet::Node& n = fleet_.add("n", "service-worker");
  const std::string before = vars_fingerprint(fleet_.snapshot(), catalog_, n, "service-worker");
  EXPECT_EQ(before.size(), 64u);
  fleet_.add("other").spec.vars = {{"x", 1}};
  n.spec.addr = "10.9.9.9";
  n.spec.labels = {{"a", "b"}};
  EXPECT_EQ(vars_fingerprint(fleet_.snapshot(), catalog_, n, "service-worker"), before)
      << "nothing of other nodes";
  n.spec.vars = {{"x", 1}};
  EXPECT_NE(vars_fingerprint(fleet_.snapshot(), catalog_, n, "service-worker"), before);
  n.spec.vars = Json::object();
  fleet_.snapshot().globals["y"] = 1;
  EXPECT_NE(vars_fingerprint(fleet_.snapshot(), catalog_, n, "service-worker"), before);
}

TEST_F(PlanTest, WhatIsAppliedAfterVerify) {
  fleet::Node& n = fleet_.add("n", "service-master");
  n.spec.versions = {{"docker", "20.10"}};
  const Plan p = accepted({{"kind", "commission"}, {"nodes", {"n"}}, {"availability", "pause"}});
  const fleet::Applied a = applied_after(fleet_.snapshot(), catalog_, p, n);
  EXPECT_EQ(a.host_group, "service-master");
  EXPECT_EQ(a.capabilities, Names{"ucp-controller"}) << "the group's defaults, spelled out";
  EXPECT_EQ(a.availability, fleet::Availability::kPause);
  EXPECT_EQ(a.services, (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
  EXPECT_EQ(a.versions.at("docker"), "20.10");
  EXPECT_EQ(a.vars_fingerprint, vars_fingerprint(fleet_.snapshot(), catalog_, n, "service-master"));
}

TEST_F(PlanTest, PlansAsJson) {
  fleet_.add("n", "service-master");
  const Json j = to_json(accepted({{"kind", "commission"}, {"nodes", {"n"}}}), fleet_.snapshot());
  EXPECT_EQ(j["stages"][1],
            (Json{{"name", "site"},
                  {"playbook", "site.yml"},
                  {"nodes", {"n"}},
                  {"parallel", "all"},
                  {"services", {{"n", {"base", "docker", "etcd", "ucarp", "swarm"}}}}}));
  EXPECT_EQ(j["quorum"]["etcd"], (Json{{"before", 0}, {"after", 1}, {"tolerates", 0}}));
  EXPECT_EQ(j["warnings"], Json::array());
  std::vector<std::string> keys;
  for (const auto& [key, value] : j.items()) keys.push_back(key);
  EXPECT_EQ(keys, (Names{"kind", "quorum", "stages", "title", "warnings"}));
}

}  // namespace
}  // namespace clusterctl::plan
