#include <gmock/gmock.h>

#include "controller/fixture.h"

namespace clusterctl::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ControllerTest, CommissionGoesThroughCheckSiteAndVerify) {
  add_four();
  const auto job = run(kCommissionAll);
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify"));
  for (const std::string name : {"m1", "m2", "m3", "w1"})
    EXPECT_EQ(lifecycle(name), "Allocated") << name;
  const auto applied = node("m2").status.applied;
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->host_group, "service-master");
  EXPECT_THAT(applied->services, testing::Contains("etcd"));
  EXPECT_EQ(node("m2").status.services.at("etcd").member_id, "etcd-m2");
  EXPECT_EQ(runs_.scrubbed.size(), 3U) << "what a run was given is removed when it ends";
}

TEST_F(ControllerTest, AFailedNodeIsCleanedAndTheOthersFinish) {
  add_four();
  runs_.scripts["site"].failing["w1"] = "swarm: join refused";
  set_members("swarm", {"m1", "m2", "m3"});
  const auto job = run(kCommissionAll);
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_THAT(job.error,
              testing::AllOf(HasSubstr("w1"), HasSubstr("swarm"), HasSubstr("join refused")));
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify", "cleanup"));
  EXPECT_THAT(runs_.targets("verify"), ElementsAre("m1", "m2", "m3"));
  EXPECT_THAT(runs_.targets("cleanup"), ElementsAre("w1"));
  EXPECT_EQ(lifecycle("m1"), "Allocated");
  EXPECT_EQ(lifecycle("w1"), "Unallocated");
  EXPECT_FALSE(has("w1", "Dirty"));
  EXPECT_TRUE(has("w1", "Failed"));
  EXPECT_EQ(job.outcome(node("w1").id)->cleanup, "cleaned");

  runs_.scripts["site"] = {};
  EXPECT_EQ(run({{"kind", "commission"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  EXPECT_EQ(lifecycle("w1"), "Allocated");
  EXPECT_FALSE(has("w1", "Failed"));
}

TEST_F(ControllerTest, BothResultsAreKeptWhenTheCleanupFailsToo) {
  add_four();
  runs_.scripts["site"].failing["w1"] = "swarm: join refused";
  runs_.scripts["cleanup"].failing["w1"] = "docker: still running";
  const auto job = run(kCommissionAll);
  EXPECT_TRUE(has("w1", "Dirty"));
  const auto* outcome = job.outcome(node("w1").id);
  EXPECT_EQ(outcome->message, "join refused");
  EXPECT_EQ(outcome->cleanup, "failed: still running");
}

TEST_F(ControllerTest, KeepOnFailureLeavesTheEvidence) {
  add_four();
  runs_.scripts["site"].failing["w1"] = "swarm: join refused";
  Json request = kCommissionAll;
  request["keep_on_failure"] = true;
  const auto job = run(request);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify"));
  EXPECT_TRUE(has("w1", "Dirty"));
  EXPECT_EQ(job.outcome(node("w1").id)->cleanup, "kept");
}

TEST_F(ControllerTest, PlaybookSuccessIsNotEnough) {
  add_four();
  runs_.scripts["verify"].unhealthy["w1"] = "docker";
  EXPECT_EQ(run(kCommissionAll).outcome(node("w1").id)->message, "it is down");
  EXPECT_EQ(lifecycle("w1"), "Unallocated");

  runs_.scripts["verify"].unhealthy.clear();
  runs_.scripts["verify"].without_facts.insert("w1");
  EXPECT_EQ(run({{"kind", "commission"}, {"nodes", {"w1"}}}).state, job::State::kFailed);
  EXPECT_EQ(lifecycle("w1"), "Unallocated");

  runs_.scripts["verify"].without_facts.clear();
  runs_.scripts["site"].silent = true;
  const auto job = run({{"kind", "commission"}, {"nodes", {"w1"}}});
  EXPECT_EQ(job.state, job::State::kFailed) << "exit code 0 without events";
  EXPECT_EQ(lifecycle("w1"), "Unallocated");
}

TEST_F(ControllerTest, AFindingOnAManagerStopsBeforeTheFirstChange) {
  add_four();
  runs_.scripts["check"].problems["m2"] = "no space";
  const auto job = run(kCommissionAll);
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_EQ(job.reason, "check_failed");
  EXPECT_THAT(runs_.stages(), ElementsAre("check"));
  EXPECT_EQ(lifecycle("m1"), "Unallocated");
  EXPECT_EQ(job.problems.size(), 1U);
}

TEST_F(ControllerTest, AFindingOnAWorkerConcernsOnlyTheWorker) {
  add_four();
  runs_.scripts["check"].problems["w1"] = "no space";
  const auto job = run(kCommissionAll);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify"));
  EXPECT_THAT(runs_.targets("site"), ElementsAre("m1", "m2", "m3"));
  EXPECT_EQ(lifecycle("m3"), "Allocated");
  EXPECT_EQ(lifecycle("w1"), "Unallocated");
  EXPECT_FALSE(has("w1", "Dirty")) << "nothing was begun there";
}

TEST_F(ControllerTest, AnInterruptedRunLeavesATrueStateAndAWayOn) {
  add_four();
  runs_.scripts["site"].interrupted = true;
  const auto job = run(kCommissionAll);
  EXPECT_EQ(job.state, job::State::kInterrupted);
  EXPECT_EQ(lifecycle("m1"), "Unallocated");
  EXPECT_TRUE(has("m1", "Interrupted"));
  runs_.scripts["site"] = {};
  EXPECT_EQ(run(kCommissionAll).state, job::State::kSucceeded);
  const Json vars = runs_.inventory("cleanup")["all"]["vars"];
  EXPECT_THAT(dump_json(vars["clusterctl_fence_runs"]), HasSubstr(job.stages[1].run))
      << "what the broken run left is ended first";
  EXPECT_FALSE(has("m1", "Interrupted"));
}

TEST_F(ControllerTest, DecommissionCleansAndForgets) {
  add_four();
  run(kCommissionAll);
  const auto job = run({{"kind", "decommission"}, {"nodes", {"w1"}}});
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_EQ(lifecycle("w1"), "Decommissioned");
  EXPECT_FALSE(node("w1").status.applied);
  EXPECT_TRUE(node("w1").status.services.empty());
}

TEST_F(ControllerTest, AFailedDecommissionIsNotForgotten) {
  add_four();
  run(kCommissionAll);
  runs_.scripts["cleanup"].failing["w1"] = "docker: busy";
  EXPECT_EQ(run({{"kind", "decommission"}, {"nodes", {"w1"}}}).state, job::State::kFailed);
  EXPECT_EQ(lifecycle("w1"), "Cancelled");
  EXPECT_TRUE(has("w1", "NotCleaned"));
  runs_.scripts["cleanup"] = {};
  EXPECT_EQ(run({{"kind", "decommission"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  EXPECT_FALSE(has("w1", "NotCleaned"));
}

TEST_F(ControllerTest, QuorumIsLookedAtAgainBeforeTheFirstChange) {
  add_four();
  run(kCommissionAll);
  Json members = runs_.scripts["observe"].members["etcd"];
  for (Json& m : members) m["reachable"] = m["name"] == "m1";
  runs_.scripts["observe"].members["etcd"] = members;
  const auto job = run({{"kind", "decommission"}, {"nodes", {"m3"}}});
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_EQ(job.reason, "quorum_lost") << job.error;
  EXPECT_EQ(lifecycle("m3"), "Allocated") << "nothing was changed";
  EXPECT_EQ(runs_.stages().back(), "observe");
}

TEST_F(ControllerTest, TheSameWorkOnTheSameNodeIsRefusedNamingTheJob) {
  add_four();
  runs_.hold = true;
  const auto first = submit(kCommissionAll);
  ASSERT_TRUE(first);
  const auto second = submit(kCommissionAll);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "duplicate");
  EXPECT_THAT(second.error().message, HasSubstr(first->id));
}

TEST_F(ControllerTest, ARestartedControllerTakesTheJobOver) {
  add_four();
  runs_.hold = true;
  const auto job = submit(kCommissionAll);
  ASSERT_TRUE(job);
  while (runs_.starts == 0) std::this_thread::yield();
  const std::string run = runs_.prepared.front().id;
  controller_->stop();
  EXPECT_EQ(c().current(job->id)->state, job::State::kRunning);
  runs_.hold = false;
  restart();
  EXPECT_EQ(wait(job->id).state, job::State::kSucceeded);
  EXPECT_EQ(runs_.prepared.front().id, run);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify"))
      << "no stage was prepared twice";
}

TEST_F(ControllerTest, CancelEndsTheRunAndCleansWhatWasTouched) {
  add_four();
  runs_.scripts["site"].cancelled = true;
  const auto job = run(kCommissionAll);
  EXPECT_EQ(job.state, job::State::kCancelled);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "cleanup"));
  EXPECT_EQ(lifecycle("m1"), "Unallocated");
  EXPECT_FALSE(has("m1", "Failed")) << "it was stopped and put in order, it did not fail";
}

TEST_F(ControllerTest, ANodeThatWasNotReachedHasNotFailed) {
  add_four();
  run(kCommissionAll);
  runs_.scripts["observe"].unreachable = {"m2", "m3"};
  EXPECT_EQ(run({{"kind", "decommission"}, {"nodes", {"m1"}}}).reason, "quorum_lost");
  EXPECT_FALSE(has("m1", "Failed")) << "the job stopped before it came to the node";
  EXPECT_EQ(lifecycle("m1"), "Allocated");
}

TEST_F(ControllerTest, AHealthyReportEndsWhatAnEarlierJobLeft) {
  add_four();
  run(kCommissionAll);
  runs_.scripts["verify"].unhealthy["w1"] = "docker";
  run({{"kind", "verify"}, {"nodes", {"w1"}}});
  EXPECT_TRUE(has("w1", "NeedsVerification"));
  runs_.scripts["verify"].unhealthy.clear();
  run({{"kind", "verify"}, {"nodes", {"w1"}}});
  EXPECT_FALSE(has("w1", "NeedsVerification"));
}

TEST_F(ControllerTest, ARefusedRequestChangesNothing) {
  add_four();
  const auto before = c().state();
  const uint64_t events = c().events().last();
  for (const Json& bad :
       {Json{{"kind", "commission"}, {"nodes", {"nobody"}}},
        Json{{"kind", "dance"}, {"nodes", {"m1"}}},
        Json{{"kind", "decommission"}, {"nodes", {"m1"}}},
        Json{{"kind", "commission"}, {"nodes", {"w1"}}},
        Json{{"kind", "commission"}, {"nodes", {"m1"}}, {"host_group", "no-such"}},
        Json{{"kind", "commission"}, {"nodes", {"m1"}}, {"vars", {{"ansible_user", "x"}}}}}) {
    EXPECT_FALSE(submit(bad)) << bad;
  }
  EXPECT_EQ(c().state(), before);
  EXPECT_EQ(c().events().last(), events);
}

TEST_F(ControllerTest, SecretsAreKeptApart) {
  add_four();
  ASSERT_TRUE(c().set_globals({{"registry_password", "S3cr3t!"}}, true));
  EXPECT_THAT(dump_json(c().state()->fleet->globals), testing::Not(HasSubstr("S3cr3t!")));
  Json request = kCommissionAll;
  request["vars"] = {{"ucp_admin_password", "Hush!"}};
  const auto job = run(request);
  EXPECT_THAT(dump_json(job::to_record(job)), testing::Not(HasSubstr("Hush!")));
  EXPECT_THAT(runs_.prepared.front().files.vars, HasSubstr("Hush!"));
  EXPECT_THAT(runs_.prepared.front().files.inventory, HasSubstr("S3cr3t!"));
  const auto records = store_->load("");
  for (const auto& record : *records) {
    EXPECT_THAT(record.value, testing::Not(HasSubstr("Hush!")))
        << record.key << ": a job's secrets go with the job";
  }
  EXPECT_TRUE(
      c().set_globals({{"registry_password", {{"secret", "globals.registry_password"}}}}, true))
      << "a reference sent back means unchanged";
  EXPECT_EQ(c().state()->secrets.at("globals.registry_password"), "S3cr3t!");
  EXPECT_FALSE(c().set_globals({{"x", {{"secret", "globals.nothing"}}}}, true));
}

TEST_F(ControllerTest, EventsAreNumberedWithoutGapOverRestarts) {
  add_four();
  run(kCommissionAll);
  const uint64_t before = c().events().last();
  restart();
  const auto page = c().events().since(0, 100000);
  EXPECT_EQ(page.gap_from, 0U);
  uint64_t expected = 1;
  for (const Event& e : page.events) EXPECT_EQ(e.seq, expected++);
  EXPECT_GT(page.last, before);
}

TEST_F(ControllerTest, AThousandNodesAreOneChange) {
  ASSERT_TRUE(c().set_globals({{"service_vip", "10.0.0.100"}}, true));
  add("m1", "10.0.0.1", "service-master");
  for (const std::string service : {"etcd", "swarm"}) set_members(service, {"m1"});
  Json names = Json::array({"m1"});
  for (int i = 0; i < 300; ++i) {
    const std::string name = "w" + std::to_string(i);
    add(name, "10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200 + 1),
        "service-worker");
    names.push_back(name);
  }
  const auto job = run({{"kind", "commission"}, {"nodes", names}});
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_EQ(lifecycle("w299"), "Allocated");
  restart();
  EXPECT_EQ(lifecycle("w0"), "Allocated") << "and it is durable";
}

}  // namespace
}  // namespace clusterctl::controller
