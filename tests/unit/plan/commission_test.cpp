#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Lifecycle;
using fleet::Presence;
using fleet::Role;

TEST_F(PlanTest, AFirstCluster) {
  for (const char* name : {"c", "a", "b"}) fleet_.add(name, "service-master");
  fleet_.add("w", "service-worker");
  const Plan p = accepted(commission({}, "service-master"));
  EXPECT_EQ(p.title, "commission 3 nodes as service-master");
  EXPECT_EQ(stages(p), "check a,b,c; site a,b,c; verify a,b,c");
  const Stage& site = *stage(p, "site");
  EXPECT_TRUE(site.one_by_one);
  EXPECT_FALSE(stage(p, "check")->one_by_one);
  EXPECT_EQ(site.vars.initiator, "a");
  EXPECT_EQ(site.vars.peer, "");
  EXPECT_EQ(site.vars.endpoint, "10.0.0.200");
  EXPECT_EQ(site.vars.managers, (Names{"a", "b", "c"}));
  EXPECT_TRUE(site.vars.leaving.empty());
  EXPECT_TRUE(site.peers.empty());
  EXPECT_EQ(site.services.at(fleet_["a"].id), (Names{"base", "docker", "etcd", "ucarp", "swarm"}));
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
  EXPECT_EQ(p.quorum.at("etcd").tolerates_after, 1);
  EXPECT_EQ(p.quorum.at("swarm").total_before, 0);
  EXPECT_TRUE(p.warnings.empty());
  ASSERT_TRUE(p.cleanup);
  EXPECT_EQ(p.cleanup->playbook, "cleanup.yml");
}

TEST_F(PlanTest, ManagersAndWorkersInOneRequestManagersFirst) {
  fleet_.add("a-worker", "service-worker");
  fleet_.add("z-manager", "service-master");
  const Plan p = accepted(commission({"a-worker", "z-manager"}));
  EXPECT_EQ(stages(p),
            "check z-manager,a-worker; site z-manager,a-worker; verify z-manager,a-worker");
  EXPECT_EQ(p.title, "commission 2 nodes (1 service-master, 1 service-worker)");
  EXPECT_EQ(stage(p, "site")->vars.initiator, "z-manager");
  EXPECT_EQ(stage(p, "site")->services.at(fleet_["a-worker"].id),
            (Names{"base", "docker", "swarm"}));
  EXPECT_EQ(p.roles.at(fleet_["a-worker"].id), Role::kWorker);
}

TEST_F(PlanTest, NamesGivenInOrderKeepIt) {
  for (const char* name : {"a", "b", "c"}) fleet_.add(name);
  EXPECT_EQ(stages(accepted(commission({"c", "a", "b"}, "service-master"))),
            "check c,a,b; site c,a,b; verify c,a,b");
}

TEST_F(PlanTest, AWorkerJoinsThroughAPeer) {
  three_managers_one_worker();
  fleet_.add("n", "service-worker");
  const Plan p = accepted(commission({"n"}));
  EXPECT_EQ(stages(p), "check n; site n; verify n") << "a worker changes no membership";
  const Stage& site = *stage(p, "site");
  EXPECT_EQ(site.vars.peer, "m1");
  EXPECT_EQ(site.vars.initiator, "");
  EXPECT_EQ(names(site.peers), (Names{"m1", "m2", "m3"})) << "managers only, never other workers";
  EXPECT_TRUE(p.quorum.empty());
  fleet_["m1"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(stage(accepted(commission({"n"})), "site")->vars.peer, "m2");
}

TEST_F(PlanTest, AFurtherManagerIsPrecededByObservation) {
  three_managers_one_worker();
  fleet_.add("n");
  const Plan p = accepted(commission({"n"}, "service-master"));
  EXPECT_EQ(stages(p), "check n; observe m1,m2,m3; site n; verify n");
  EXPECT_EQ(stage(p, "site")->vars.managers, (Names{"m1", "m2", "m3", "n"}));
  EXPECT_EQ(p.quorum.at("etcd").total_before, 3);
  EXPECT_EQ(p.quorum.at("etcd").total_after, 4);
  EXPECT_EQ(p.quorum.at("etcd").tolerates_after, 1);
  ASSERT_EQ(p.warnings.size(), 1u);
  EXPECT_EQ(p.warnings[0].code, "even_managers");
}

TEST_F(PlanTest, NoFurtherManagerWhileOneIsMissing) {
  three_managers_one_worker();
  fleet_.add("n");
  fleet_.report({"m3"});
  EXPECT_EQ(refused(commission({"n"}, "service-master")), (Codes{"quorum", "quorum"}));
  Json forced = commission({"n"}, "service-master");
  forced["force"] = true;
  EXPECT_EQ(refused(forced), Codes{});
  fleet_.report({"m2", "m3"});
  EXPECT_EQ(refused(forced), (Codes{"quorum", "quorum"}))
      << "without a majority nothing can be added";
  EXPECT_EQ(plan(forced).error().code, Code::kConflict);
}

TEST_F(PlanTest, GroupsAndCapabilities) {
  fleet_.manager("m1");
  fleet_.report();
  fleet_.add("n").spec.capabilities = {"storage"};
  EXPECT_EQ(refused(commission({"n"})), Codes{"no_group"});
  EXPECT_EQ(plan(commission({"n"})).error().code, Code::kInvalid);
  EXPECT_EQ(refused(commission({"n"}, "service-workers")), Codes{"unknown_group"});
  EXPECT_NE(plan(commission({"n"}, "service-workers")).error().hint.find("service-worker"),
            std::string::npos);
  Plan p = accepted(commission({"n"}, "service-worker"));
  EXPECT_EQ(p.changes.at(fleet_["n"].id).capabilities, Names{"storage"});
  EXPECT_EQ(p.changes.at(fleet_["n"].id).host_group, "service-worker");
  // Of another group than asked for: they say nothing about this one.
  fleet_["n"].spec.host_group = "service-master";
  p = accepted(commission({"n"}, "service-worker"));
  EXPECT_EQ(p.changes.at(fleet_["n"].id).capabilities, Names{});
  Json body = commission({"n"}, "service-worker");
  body["capabilities"] = {"dtr-controller"};
  body["availability"] = "drain";
  p = accepted(body);
  EXPECT_EQ(p.changes.at(fleet_["n"].id).capabilities, Names{"dtr-controller"});
  EXPECT_EQ(p.changes.at(fleet_["n"].id).availability, fleet::Availability::kDrain);
  EXPECT_EQ(stage(p, "site")->services.at(fleet_["n"].id),
            (Names{"base", "docker", "swarm", "dtr"}));
  body["host_group"] = "service-master";
  EXPECT_EQ(accepted(body).roles.at(fleet_["n"].id), Role::kWorker)
      << "a registry node is a worker whatever its group";
}

TEST_F(PlanTest, WhichNodesARequestWithoutNamesMeans) {
  fleet_.manager("m1");
  fleet_.report();
  fleet_.add("a", "service-worker").spec.labels = {{"rack", "1"}};
  fleet_.add("b", "service-worker");
  fleet_.add("c", "service-worker").spec.acceptance = fleet::Acceptance::kPending;
  fleet_.add("d", "service-worker").spec.allocation = fleet::Allocation::kSpare;
  fleet_.add("e");
  fleet_.add("f", "service-worker").status.lifecycle = Lifecycle::kDecommissioned;
  fleet_.worker("g");
  EXPECT_EQ(names(accepted(commission({}, "service-worker")).targets), (Names{"a", "b", "f"}));
  Json body = commission({}, "service-worker");
  body["selector"] = "rack=1";
  EXPECT_EQ(names(accepted(body).targets), Names{"a"});
  body.erase("host_group");
  EXPECT_EQ(names(accepted(body).targets), Names{"a"});
  body["selector"] = "rack=2";
  EXPECT_EQ(refused(body), Codes{"no_nodes"});
  EXPECT_EQ(plan(body).error().code, Code::kNotFound);
  EXPECT_EQ(refused(commission({}, "service-master")), Codes{"no_nodes"});
  EXPECT_EQ(refused(commission({}, "nonsense")), Codes{"unknown_group"});
  EXPECT_EQ(refused(commission({})), Codes{"no_nodes"});
}

TEST_F(PlanTest, AllProblemsOfAllNodesTogether) {
  three_managers_one_worker();
  fleet_.add("a").spec.acceptance = fleet::Acceptance::kPending;
  fleet_.add("b").spec.versions = {{"nothing", "1"}};
  fleet_.add("c");
  fleet_["c"].status.hardware = fleet::Hardware{};
  fleet_["c"].status.hardware->memory_mb = 100;
  EXPECT_EQ(refused(commission({"a", "b", "c"}, "service-worker")),
            (Codes{"not_accepted", "too_little_memory", "unknown_service"}));
  EXPECT_EQ(plan(commission({"a", "b", "c"}, "service-worker")).error().code, Code::kRefused);
  EXPECT_EQ(refused(commission({"a", "w1", "zz"}, "service-worker")),
            (Codes{"no_such_node", "transition"}));
  EXPECT_EQ(plan(commission({"a", "w1", "zz"}, "service-worker")).error().code, Code::kNotFound);
}

TEST_F(PlanTest, StatesThatCanBeCommissioned) {
  fleet_.manager("m1");
  fleet_.report();
  fleet_.add("n", "service-worker");
  for (const auto& [l, name] : fleet::Words<Lifecycle>::kTable) {
    fleet_["n"].status.lifecycle = l;
    const bool fine = l == Lifecycle::kUnallocated || l == Lifecycle::kDecommissioned ||
                      l == Lifecycle::kProvisioning;
    EXPECT_EQ(refused(commission({"n"})), fine ? Codes{} : Codes{"transition"}) << name;
  }
}

TEST_F(PlanTest, ANodeNamedTwiceIsRefused) {
  fleet_.manager("m1");
  fleet_.report();
  fleet_.add("n", "service-worker");
  EXPECT_EQ(refused(commission({"n", "N", fleet_["n"].id})), (Codes{"named_twice", "named_twice"}));
}

TEST_F(PlanTest, OneManagerWithoutVip) {
  fleet_.snapshot().globals = Json::object();
  fleet_.add("a", "service-master");
  fleet_.add("b", "service-master");
  EXPECT_EQ(stage(accepted(commission({"a"})), "site")->vars.endpoint, fleet_["a"].spec.addr);
  EXPECT_EQ(refused(commission({"a", "b"})), (Codes{"vip_required", "vip_required"}));
  Json body = commission({"a", "b"});
  body["vars"] = {{"service_vip", "10.0.0.201"}};
  EXPECT_EQ(stage(accepted(body), "site")->vars.endpoint, "10.0.0.201") << "request variables win";
}

TEST_F(PlanTest, TombstonesAreCleanedFirst) {
  three_managers_one_worker();
  fleet::Node& n = fleet_.add("n", "service-worker");
  n.status.lifecycle = Lifecycle::kDecommissioned;
  set_condition(n.status, fleet::condition::kNotCleaned, "was off", "j", fleet::at(1));
  Plan p = accepted(commission({"n"}));
  EXPECT_EQ(stages(p), "cleanup n; check n; site n; verify n");
  EXPECT_EQ(p.stages[0].vars.leaving, Names{"n"});
  EXPECT_EQ(p.stages[0].vars.managers, (Names{"m1", "m2", "m3"}));
  EXPECT_EQ(p.stages[0].vars.peer, "m1");
  EXPECT_EQ(p.stages[0].services.at(n.id), (Names{"base", "docker", "etcd", "ucarp", "swarm"}))
      << "whatever it carried";
  p = accepted(commission({"n"}, "service-master"));
  EXPECT_EQ(stages(p), "observe m1,m2,m3; cleanup n; check n; site n; verify n");
}

TEST_F(PlanTest, AFirstManagerWhoseCleanupFailedBeginsAgain) {
  fleet::Node& n = fleet_.add("n", "service-master");
  set_condition(n.status, fleet::condition::kDirty, "left", "j", fleet::at(1));
  n.status.services["etcd"].healthy = true;
  n.status.services["etcd"].members = {{"x", "n", "", "member", true, true}};
  const Plan p = accepted(commission({"n"}));
  EXPECT_EQ(stages(p), "cleanup n; check n; site n; verify n");
  EXPECT_EQ(stage(p, "site")->vars.initiator, "n");
  EXPECT_EQ(p.quorum.at("etcd").total_after, 1);
}

TEST_F(PlanTest, ABrokenOffCommissionCanBeRepeated) {
  for (const char* name : {"a", "b", "c"})
    fleet_.add(name, "service-master").status.lifecycle = Lifecycle::kProvisioning;
  EXPECT_EQ(stage(accepted(commission({"a", "b", "c"})), "site")->vars.initiator, "a");
  EXPECT_EQ(refused(commission({"b"})), (Codes{"unfinished_manager", "unfinished_manager"}))
      << "a and c may have begun a cluster";
  // a has reported itself as a member before the break.
  fleet_["a"].status.services["etcd"].healthy = true;
  fleet_["a"].status.services["etcd"].members = {{"x", "a", "", "member", true, true}};
  const Plan p = accepted(commission({"a", "b", "c"}));
  EXPECT_EQ(stage(p, "site")->vars.initiator, "a");
  EXPECT_EQ(p.quorum.at("etcd").total_before, 1);
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
}

TEST_F(PlanTest, NoRivalOfAClusterWithoutManagersInService) {
  fleet_.manager("m1").status.lifecycle = Lifecycle::kCancelled;
  fleet_.report();
  fleet_.add("n", "service-master");
  const Codes codes = refused(commission({"n"}));
  EXPECT_NE(std::find(codes.begin(), codes.end(), "no_reachable_manager"), codes.end());
  EXPECT_NE(std::find(codes.begin(), codes.end(), "unfinished_manager"), codes.end());
}

TEST_F(PlanTest, AMemberThatShallBeAWorkerLeavesFirst) {
  three_managers_one_worker();
  fleet_["m3"].status.lifecycle = Lifecycle::kProvisioning;
  fleet_["m3"].status.applied.reset();
  const Plan p = accepted(commission({"m3"}, "service-worker"));
  EXPECT_EQ(stages(p), "observe m1,m2; cleanup m3; check m3; site m3; verify m3");
  EXPECT_EQ(p.quorum.at("etcd").total_after, 2);
}

TEST_F(PlanTest, PlacementRulesGetTheFactsOfTheCatalog) {
  fleet_.add("n", "service-master");
  const auto with = [&](const Json& vars) {
    Json body = commission({"n"});
    body["vars"] = vars;
    return refused(body);
  };
  EXPECT_EQ(with({{"etcd_client_port", 2377}}), Codes{"port_conflict"});
  EXPECT_EQ(with({{"etcd_client_port", "2380"}}), Codes{"port_conflict"});
  EXPECT_EQ(with({{"etcd_client_port", "http"}}), Codes{"bad_port"});
  EXPECT_EQ(with({{"etcd_client_port", 4001}}), Codes{});
  EXPECT_EQ(with({{"docker_version", 20.10}}), Codes{"number_as_version"});
  EXPECT_EQ(with({{"scheduler_provider", "none"}, {"swarm_port", 2379}}), Codes{})
      << "swarm is not there";
  fleet_["n"].status.hardware = fleet::Hardware{};
  fleet_["n"].status.hardware->memory_mb = 256 * 3 + 127;
  EXPECT_EQ(with(Json::object()), Codes{"too_little_memory"});
}

TEST_F(PlanTest, CleanupOfTheFailedOnes) {
  for (const char* name : {"a", "b", "w"}) fleet_.add(name);
  fleet_["a"].spec.host_group = fleet_["b"].spec.host_group = "service-master";
  fleet_["w"].spec.host_group = "service-worker";
  const Plan p = accepted(commission({"a", "b", "w"}));
  auto c = cleanup_for(p, fleet_.snapshot(), {fleet_["b"].id, fleet_["w"].id});
  ASSERT_TRUE(c);
  EXPECT_EQ(names(c->nodes), (Names{"b", "w"}));
  EXPECT_EQ(c->vars.leaving, (Names{"b", "w"}));
  EXPECT_EQ(c->vars.managers, Names{"a"});
  EXPECT_EQ(c->vars.peer, "a");
  EXPECT_EQ(names(c->peers), Names{"a"});
  c = cleanup_for(p, fleet_.snapshot(), {fleet_["a"].id, fleet_["b"].id, fleet_["w"].id});
  EXPECT_EQ(c->vars.peer, "");
  EXPECT_TRUE(c->vars.managers.empty());
  EXPECT_FALSE(cleanup_for(p, fleet_.snapshot(), {}));
  EXPECT_FALSE(cleanup_for(p, fleet_.snapshot(), {"stranger"}));
  Json keep = commission({"a"});
  keep["keep_on_failure"] = true;
  EXPECT_FALSE(accepted(keep).cleanup);
}

TEST_F(PlanTest, PinnedRequestsPlanTheSameAgain) {
  for (const char* name : {"b", "a"}) fleet_.add(name, "service-master");
  const Request r = request(commission({}, "service-master"));
  const Plan p = *make_plan(fleet_.snapshot(), catalog_, r);
  const Request again = pinned(r, p, fleet_.snapshot());
  for (const char* name : {"a", "b"}) fleet_[name].status.lifecycle = Lifecycle::kProvisioning;
  const auto q = make_plan(fleet_.snapshot(), catalog_, again);
  ASSERT_TRUE(q) << dump(q);
  EXPECT_EQ(to_json(*q, fleet_.snapshot()), to_json(p, fleet_.snapshot()));
}

TEST_F(PlanTest, ObservationBeforeTheFirstChange) {
  three_managers_one_worker();
  fleet_.add("n");
  const Request r = request(commission({"n"}, "service-master"));
  const Plan p = *make_plan(fleet_.snapshot(), catalog_, r);
  EXPECT_TRUE(recheck_quorum(fleet_.snapshot(), catalog_, r, p));
  fleet_["n"].status.lifecycle = Lifecycle::kProvisioning;
  fleet_.report({"m2"}, 200);
  const auto lost = recheck_quorum(fleet_.snapshot(), catalog_, r, p);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kConflict);
  EXPECT_EQ(lost.error().reason, "quorum_lost");
  EXPECT_EQ(lost.error().problems.size(), 2u);
}

}  // namespace
}  // namespace clusterctl::plan
