// What differs from what was applied, and why a node waits.
#include "plan/drift.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "plan/pending.h"
#include "plan/plan_fixture.h"

namespace clusterctl::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DriftTest : public PlanTest {
 protected:
  DriftTest() {
    three_managers_one_worker();
    fleet_.snapshot().globals["token"] = {{"secret", "globals.token"}};
    fleet_.snapshot().secret_digests["globals.token"] = "one";
    for (auto& [id, node] : fleet_.snapshot().nodes) apply(node);
  }
  // As a job leaves it that has just converged and verified it.
  void apply(fleet::Node& node) {
    Plan plan;
    plan.kind = "update";
    Stage verify;
    verify.name = "verify";
    verify.nodes = {node.id};
    verify.services[node.id] = catalog_.services_for(
        node.spec.host_group, catalog_.capabilities_for(node.spec.host_group, {}),
        effective_vars(fleet_.snapshot(), catalog_, node, node.spec.host_group));
    plan.stages = {verify};
    node.status.applied = applied_after(fleet_.snapshot(), catalog_, plan, node);
  }
  std::vector<std::string> drift(const std::string& name) {
    return drift_of(fleet_.snapshot(), catalog_, fleet_[name]);
  }
  Json& globals() { return fleet_.snapshot().globals; }
};

TEST_F(DriftTest, NothingAfterAJob) {
  for (const char* name : {"m1", "m2", "m3", "w1"}) EXPECT_THAT(drift(name), IsEmpty());
}

TEST_F(DriftTest, AVariableOfANodeConcernsThatNode) {
  fleet_["w1"].spec.vars["x"] = 1;
  EXPECT_THAT(drift("w1"), ElementsAre("variable x"));
  EXPECT_THAT(drift("m1"), IsEmpty());
  apply(fleet_["w1"]);
  EXPECT_THAT(drift("w1"), IsEmpty());
  fleet_["w1"].spec.vars = Json::object();
  EXPECT_THAT(drift("w1"), ElementsAre("variable x"));
}

TEST_F(DriftTest, AGlobalConcernsThoseThatCarryItsService) {
  globals()["etcd_quota"] = 5;
  EXPECT_THAT(drift("m1"), ElementsAre("variable etcd_quota"));
  EXPECT_THAT(drift("w1"), IsEmpty());
  globals().erase("etcd_quota");
  globals()["env"] = {{"a", "b"}};
  EXPECT_THAT(drift("m1"), ElementsAre("variable env"));
  EXPECT_THAT(drift("w1"), ElementsAre("variable env"));
  globals().erase("env");
  EXPECT_THAT(drift("m1"), IsEmpty()) << "it was changed back";
}

TEST_F(DriftTest, AGlobalThatANodeOverridesDoesNotConcernIt) {
  fleet_["w1"].spec.vars["x"] = 1;
  apply(fleet_["w1"]);
  globals()["x"] = 2;
  EXPECT_THAT(drift("w1"), IsEmpty());
  EXPECT_THAT(drift("m1"), ElementsAre("variable x"));
}

TEST_F(DriftTest, OfASecretOnlyTheNameIsSaid) {
  fleet_.snapshot().secret_digests["globals.token"] = "two";
  EXPECT_THAT(drift("w1"), ElementsAre("variable token"));
  fleet_.snapshot().secret_digests["globals.token"] = "one";
  EXPECT_THAT(drift("w1"), IsEmpty());
}

TEST_F(DriftTest, ServicesThatComeAndGoAndTheirVersions) {
  globals().erase("service_vip");
  EXPECT_THAT(drift("m1"),
              ElementsAre("service ucarp is not wanted any more", "variable service_vip"));
  globals()["service_vip"] = "10.0.0.200";
  fleet_["w1"].spec.versions["docker"] = "24.0";
  EXPECT_THAT(drift("w1"), ElementsAre("version of service docker"));
  globals()["etcd_version"] = "3.5";
  EXPECT_THAT(drift("m1"), ElementsAre("version of service etcd"));
  EXPECT_THAT(drift("w1"), ElementsAre("version of service docker"));
}

TEST_F(DriftTest, AChangedCatalogConcernsThoseThatCarryTheService) {
  const catalog::Catalog changed = *catalog::Catalog::parse_text(R"(
host_groups:
  service-master: {manager: true, capabilities: [ucp-controller]}
  service-worker: {manager: false, capabilities: [service-worker, can-run-user-containers], vars: {from_group: 1, level: group}}
defaults: {scheduler_provider: swarm-mode, vip_provider: ucarp}
services:
  base: {on: all, memory: 512M}
  docker: {on: all, needs: [base], version: docker_version, memory: 256M, disrupts: node}
  etcd: {on: {role: manager}, needs: [base, docker], version: etcd_version, quorum: members, memory: 256M, ports: {etcd_client_port: 2379, etcd_peer_port: 2380}}
  ucarp: {on: {role: manager}, when: service_vip, needs: [base]}
  swarm: {on: all, when: {scheduler_provider: swarm-mode}, needs: [docker], quorum: members, schedules: true, memory: 128M, ports: {swarm_port: 2377}}
  agent: {on: {host_group: [service-worker]}, needs: [docker]}
  dtr: {on: {capability: [dtr-controller, dtr-replica]}, needs: [docker], forbids: {service: etcd}}
)",
                                                                 "changed");
  EXPECT_THAT(drift_of(fleet_.snapshot(), changed, fleet_["m1"]),
              ElementsAre("service etcd has another entry in the catalog"));
  EXPECT_THAT(drift_of(fleet_.snapshot(), changed, fleet_["w1"]),
              ElementsAre("service agent is not there yet"));
}

TEST_F(DriftTest, OnlyNodesInServiceDrift) {
  using enum fleet::Lifecycle;
  fleet_["w1"].spec.vars["x"] = 1;
  for (const auto lifecycle : {kProvisioning, kCancelled, kDecommissioned, kUnallocated}) {
    fleet_["w1"].status.lifecycle = lifecycle;
    EXPECT_THAT(drift("w1"), IsEmpty()) << fleet::word(lifecycle);
  }
  fleet_["w1"].status.lifecycle = kMaintenance;
  EXPECT_THAT(drift("w1"), ElementsAre("variable x"));
}

TEST_F(DriftTest, RecordsOfEarlierVersionsAreComparedAsAWhole) {
  fleet::Applied& applied = *fleet_["w1"].status.applied;
  applied.vars.clear();
  applied.catalog.clear();
  EXPECT_THAT(drift("w1"), IsEmpty());
  fleet_["w1"].spec.vars["x"] = 1;
  EXPECT_THAT(drift("w1"), ElementsAre("variables"));
}

TEST_F(DriftTest, WhatWasChangedMeanwhileCounts) {
  fleet_["w1"].status.applied->vars_fingerprint.clear();
  EXPECT_THAT(drift("w1"), ElementsAre("variables were changed while it was converged"));
}

TEST(Drift, ALongListIsCut) {
  std::vector<std::string> items;
  for (int i = 0; i < 10; ++i) items.push_back("variable v" + std::to_string(i));
  const std::string line = drift_reason(items);
  EXPECT_THAT(line, testing::HasSubstr("variable v7 and 2 more"));
}

// Whatever is set, in whatever order: no difference if and only if every value is as it was.
RC_GTEST_FIXTURE_PROP(DriftTest, SameValuesNoDrift, ()) {
  const Json before = globals();
  std::map<std::string, int> now;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::inRange(0, 3)));
  for (const auto& [name, value] : steps) {
    const std::string key = "var" + std::to_string(name);
    if (value == 0) {
      globals().erase(key);
    } else {
      globals()[key] = value;
    }
  }
  std::vector<std::string> expected;
  for (const auto& [name, value] : globals().items()) {
    if (name.starts_with("var")) expected.push_back("variable " + name);
  }
  RC_ASSERT(drift("m2") == expected);
  apply(fleet_["m2"]);
  RC_ASSERT(drift("m2").empty());
}

TEST_F(PlanTest, AWorkerWaitsForTheFirstManager) {
  fleet_.add("m1", "service-master");
  fleet_.add("w1", "service-worker");
  const auto why = [&](const char* name) {
    return why_pending(fleet_.snapshot(), catalog_, fleet_[name]);
  };
  EXPECT_EQ(why("m1"), std::nullopt);
  EXPECT_EQ(why("w1"), "w1 would be a worker of a cluster without a manager");
  fleet_["w1"].spec.allocation = fleet::Allocation::kSpare;
  EXPECT_EQ(why("w1"), std::nullopt) << "it is not wanted";
  fleet_["w1"].spec.allocation = fleet::Allocation::kInService;
  fleet_["w1"].spec.host_group.clear();
  EXPECT_EQ(why("w1"), std::nullopt) << "nothing is decided";
}

TEST_F(PlanTest, PendingFollowsTheManagers) {
  three_managers_one_worker();
  fleet_.add("w2", "service-worker");
  const auto why = [&] { return why_pending(fleet_.snapshot(), catalog_, fleet_["w2"]); };
  EXPECT_EQ(why(), std::nullopt);
  const std::string key = pending_key(fleet_.snapshot(), catalog_);
  for (const char* name : {"m1", "m2", "m3"})
    fleet_[name].status.presence = fleet::Presence::kDisappeared;
  EXPECT_NE(why(), std::nullopt);
  EXPECT_NE(pending_key(fleet_.snapshot(), catalog_), key);
  for (const char* name : {"m1", "m2", "m3"})
    fleet_[name].status.presence = fleet::Presence::kDiscovered;
  EXPECT_EQ(why(), std::nullopt);
  EXPECT_EQ(pending_key(fleet_.snapshot(), catalog_), key);
  fleet_["w1"].status.presence = fleet::Presence::kDisappeared;
  EXPECT_EQ(pending_key(fleet_.snapshot(), catalog_), key) << "a worker is no ground";
}

TEST_F(PlanTest, SpareAndRetiredAreLeftOutUnlessNamed) {
  three_managers_one_worker();
  fleet_.add("w2", "service-worker");
  fleet_.add("s1", "service-worker").spec.allocation = fleet::Allocation::kSpare;
  fleet_.add("r1", "service-worker").spec.allocation = fleet::Allocation::kRetired;
  const Json all{{"kind", "commission"}, {"host_group", "service-worker"}};
  EXPECT_EQ(names(accepted(all).targets), (Names{"w2"}));
  EXPECT_EQ(names(accepted({{"kind", "check"}}).targets), (Names{"m1", "m2", "m3", "w1", "w2"}));
  EXPECT_EQ(names(accepted({{"kind", "check"}, {"nodes", {"s1"}}}).targets), (Names{"s1"}));
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"s1"}}}), (Codes{"not_in_service"}));
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"w2", "r1"}}}), (Codes{"not_in_service"}));
}

TEST_F(PlanTest, ANodeNamedTwiceIsRefusedInAnySpelling) {
  three_managers_one_worker();
  for (const char* kind : {"check", "verify", "update", "drain", "decommission"}) {
    EXPECT_EQ(refused({{"kind", kind}, {"nodes", {"w1", "W1."}}}), (Codes{"named_twice"})) << kind;
  }
}

TEST_F(PlanTest, VerifyAndCheckOnAnySelection) {
  three_managers_one_worker();
  fleet_["w1"].spec.labels["rack"] = "r3";
  fleet_["m1"].spec.labels["rack"] = "r3";
  fleet_.add("n5", "service-worker").spec.labels["rack"] = "r3";
  const Json rack{{"selector", "rack=r3"}};
  const auto with = [](Json body, const char* kind) {
    body["kind"] = kind;
    return body;
  };
  EXPECT_EQ(names(accepted(with(rack, "verify")).targets), (Names{"m1", "w1"}));
  EXPECT_EQ(names(accepted(with(rack, "check")).targets), (Names{"m1", "n5", "w1"}));
  EXPECT_EQ(names(accepted({{"kind", "verify"}, {"host_group", "service-worker"}}).targets),
            (Names{"w1"}));
  // What does not fit is told for each node.
  fleet_.add("n6").spec.acceptance = fleet::Acceptance::kRejected;
  EXPECT_EQ(refused({{"kind", "verify"}, {"nodes", {"w1", "n5", "n6"}}}),
            (Codes{"transition", "transition"}));
  EXPECT_EQ(refused({{"kind", "check"}, {"nodes", {"n5", "n6"}}}), (Codes{"not_accepted"}));
}

}  // namespace
}  // namespace clusterctl::plan
