#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;
using fleet::Presence;

class UpdateTest : public PlanTest {
 protected:
  void fleet(int managers, int workers) {
    for (int i = 1; i <= managers; ++i) fleet_.manager("m" + std::to_string(i));
    for (int i = 1; i <= workers; ++i) fleet_.worker("w" + std::to_string(i));
    fleet_.report();
    settle();
  }
  // What was applied is what is wanted.
  void settle() {
    for (auto& [id, node] : fleet_.snapshot().nodes) {
      if (!node.status.applied) continue;
      node.status.applied->vars_fingerprint =
          vars_fingerprint(fleet_.snapshot(), catalog_, node, node.status.applied->host_group);
    }
  }
  // "1: site m1, verify m1; 2: …"
  std::string batches(const Plan& p) {
    std::string out;
    int batch = 0;
    for (const Stage& s : p.stages) {
      if (s.batch == 0) continue;
      out += s.batch != batch ? (out.empty() ? "" : "; ") + std::to_string(s.batch) + ": " : ", ";
      batch = s.batch;
      out += s.name;
      for (size_t i = 0; i < s.nodes.size(); ++i) out += (i ? "+" : " ") + names(s.nodes)[i];
    }
    return out;
  }
  static Json update(std::vector<std::string> nodes = {}) {
    Json out{{"kind", "update"}};
    if (!nodes.empty()) out["nodes"] = nodes;
    return out;
  }
};

TEST_F(UpdateTest, ManagersOneByOneThenWorkersInBatches) {
  fleet(3, 3);
  Json body = update();
  body["max_unavailable"] = 2;
  const Plan p = accepted(body);
  EXPECT_EQ(p.title, "update 6 nodes");
  EXPECT_EQ(names(p.targets), (Names{"m1", "m2", "m3", "w1", "w2", "w3"}));
  EXPECT_EQ(p.stages[0].name, "check");
  EXPECT_EQ(p.stages[1].name, "observe");
  EXPECT_EQ(batches(p),
            "1: site m1, verify m1; 2: observe m1+m2+m3, site m2, verify m2; "
            "3: observe m1+m2+m3, site m3, verify m3; 4: site w1+w2, verify w1+w2; "
            "5: site w3, verify w3")
      << "nothing differs: nothing is drained";
  for (const Stage& s : p.stages) {
    EXPECT_EQ(s.vars.initiator, "") << s.name;
    EXPECT_EQ(s.vars.managers, (Names{"m1", "m2", "m3"}));
    for (const std::string& id : s.nodes)
      EXPECT_NE(s.vars.peer, fleet_.snapshot().nodes.at(id).name);
  }
  EXPECT_TRUE(p.changes.empty()) << "what is wanted of the nodes stays as it is";
  EXPECT_FALSE(p.cleanup) << "nothing is torn down";
  EXPECT_EQ(p.quorum.at("etcd").total_after, 3);
}

TEST_F(UpdateTest, ABatchIsDrainedAndPutBackWhenTheNodeMayStop) {
  fleet(3, 2);
  Json body = update({"w1"});
  body["vars"] = {{"docker_version", "24"}};
  body["deadline"] = 30;
  const Plan p = accepted(body);
  EXPECT_EQ(batches(p), "1: drain w1, site w1, verify w1, restore w1");
  const Stage &drain = p.stages[2], &restore = p.stages[5];
  EXPECT_EQ(drain.availability.at(fleet_["w1"].id), Availability::kDrain);
  EXPECT_EQ(drain.vars.drain_deadline, 30);
  EXPECT_EQ(restore.availability.at(fleet_["w1"].id), Availability::kActive);
  EXPECT_TRUE(restore.restores);
  EXPECT_EQ(restore.vars.drain_deadline, 0);

  body["drain"] = "never";
  EXPECT_EQ(batches(accepted(body)), "1: site w1, verify w1");
}

TEST_F(UpdateTest, DrainsOnlyWhereSomethingDiffers) {
  fleet(3, 3);
  fleet_["w2"].spec.vars["docker_daemon_options"] = {{"debug", true}};
  fleet_["w3"].spec.availability = fleet_["w3"].status.applied->availability = Availability::kDrain;
  settle();
  fleet_["w2"].status.applied->vars_fingerprint = "older";
  Json body = update({"w1", "w2", "w3"});
  body["max_unavailable"] = 3;
  EXPECT_EQ(batches(accepted(body)),
            "1: site w3, verify w3; 2: drain w2, site w1+w2, verify w1+w2, restore w2");
  body["drain"] = "always";
  EXPECT_EQ(batches(accepted(body)),
            "1: site w3, verify w3; 2: drain w1+w2, site w1+w2, verify "
            "w1+w2, restore w1+w2")
      << "what is drained already stays drained";
}

TEST_F(UpdateTest, NothingIsDrainedWithoutAPlaceToGo) {
  fleet(1, 0);
  Json body = update({"m1"});
  body["drain"] = "always";
  body["allow_outage"] = true;
  const Plan p = accepted(body);
  EXPECT_EQ(batches(p), "1: site m1, verify m1");
  ASSERT_EQ(p.warnings.size(), 1U);
  EXPECT_EQ(p.warnings[0].code, "not_drained");
  EXPECT_EQ(p.stages[2].vars.peer, "");
}

TEST_F(UpdateTest, MajoritiesAreKept) {
  fleet(3, 1);
  fleet_.report({"m3"});
  EXPECT_EQ(refused(update({"m1"})), (Codes{"quorum", "quorum"}));
  EXPECT_EQ(stages(accepted(update({"w1"}))).substr(0, 8), "check w1") << "workers are no members";
  fleet_.report();
  EXPECT_TRUE(refused(update({"m1"})).empty());
}

TEST_F(UpdateTest, FewManagersNeedAWordAboutTheOutage) {
  fleet(2, 0);
  EXPECT_EQ(refused(update({"m1"})), (Codes{"quorum", "quorum"}));
  const auto p = plan(update({"m1"}));
  EXPECT_NE(p.error().hint.find("--allow-outage"), std::string::npos) << p.error().hint;
  Json body = update({"m1"});
  body["allow_outage"] = true;
  EXPECT_TRUE(refused(body).empty());
}

TEST_F(UpdateTest, WhatIsAwayAlreadySpendsTheBudget) {
  fleet(3, 4);
  fleet_["w4"].status.presence = Presence::kDisappeared;
  const auto p = plan(update({"w1", "w2"}));
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, Code::kConflict);
  EXPECT_EQ(p.error().problems[0].code, "budget");
  EXPECT_EQ(p.error().problems[0].message,
            "no worker may go down: 1 of 4 is unavailable already (w4), and max_unavailable is 1");

  fleet_.snapshot().cluster.max_unavailable = "50%";
  EXPECT_EQ(batches(accepted(update({"w1", "w2"}))), "1: site w1, verify w1; 2: site w2, verify w2")
      << "two may be down, one is";
}

TEST_F(UpdateTest, WhatIsOutOfUseGoesFirstAndCostsNothing) {
  fleet(3, 4);
  fleet_["w3"].status.lifecycle = Lifecycle::kMaintenance;
  fleet_["w4"].status.services["swarm"].healthy = false;
  fleet_["w3"].status.conditions.clear();
  EXPECT_EQ(batches(accepted(update({"w1", "w2", "w3", "w4"}))),
            "1: site w3, verify w3; 2: site w4, verify w4; 3: site w1, verify w1; "
            "4: site w2, verify w2");
}

TEST_F(UpdateTest, AManagersReportOfAWorkerCounts) {
  fleet(3, 2);
  for (const char* m : {"m1", "m2", "m3"}) {
    auto& s = fleet_[m].status.services["swarm"];
    s.members.push_back({"swarm-w2", "w2", "", "worker", false, false});
  }
  EXPECT_EQ(worker_state(fleet_.snapshot(), catalog_).unavailable,
            (std::set<std::string>{fleet_["w2"].id}));
}

TEST_F(UpdateTest, WhatDoesNotAnswerIsLeftOutOrRefused) {
  fleet(3, 2);
  fleet_["w1"].status.presence = Presence::kDisappeared;
  fleet_.snapshot().cluster.max_unavailable = "2";
  EXPECT_EQ(refused(update({"w1"})), (Codes{"unreachable"}));
  Json body = update();
  body["host_group"] = "service-worker";
  const Plan p = accepted(body);
  EXPECT_EQ(names(p.targets), (Names{"w2"}));
  EXPECT_EQ(p.warnings[0].code, "left_out");
  fleet_.add("n1");
  EXPECT_EQ(refused(update({"n1"})), (Codes{"transition"}));
}

TEST_F(UpdateTest, AJobHoldsSoManyBatches) {
  fleet(1, 120);
  Json body = update();
  body["host_group"] = "service-worker";
  EXPECT_EQ(refused(body), (Codes{"too_many_batches"}));
  body["max_unavailable"] = "2%";
  EXPECT_EQ(accepted(body).stages.back().batch, 60);
}

TEST_F(UpdateTest, Budgets) {
  EXPECT_EQ(budget("3", 10), 3);
  EXPECT_EQ(budget("25%", 10), 2);
  EXPECT_EQ(budget("1%", 10), 1) << "at least one, or nothing could ever be done";
  EXPECT_EQ(budget("100%", 7), 7);
  EXPECT_FALSE(budget("", 10));
}

TEST_F(UpdateTest, AppliedIsWhatTheNodesOwnVerifySaw) {
  fleet(3, 1);
  Json body = update({"m1", "w1"});
  const Plan p = accepted(body);
  fleet_["m1"].status.applied->services = {"base"};  // as an older plan of a peer would have it
  const auto applied = applied_after(fleet_.snapshot(), catalog_, p, fleet_["m1"]);
  EXPECT_EQ(applied.services, p.stages[2].services.at(fleet_["m1"].id));
}

}  // namespace
}  // namespace clusterctl::plan
