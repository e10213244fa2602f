// Queue, pause, resume, retry, cancel and time limits of jobs.
#include <gmock/gmock.h>

#include "controller/fixture.h"

namespace clusterctl::controller {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Json kW1{{"kind", "commission"}, {"nodes", {"w1"}}};
const job::Selection kResume{true, false, false};
const job::Selection kRetryFailed{false, true, false};

class ControlTest : public ControllerTest {
 protected:
  template <typename Condition>
  void until(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }
  void until_state(const std::string& id, job::State state) {
    until([&] { return c().current(id)->state == state; });
  }
  // A commission of all four that stands in its check until hold is taken back.
  job::Job held() {
    add_four();
    runs_.hold = true;
    auto job = submit(kCommissionAll);
    EXPECT_TRUE(job) << job.error().line();
    until([&] {  // nothing more is stored about it then
      const auto now = c().current(job->id);
      return std::any_of(now->stages.begin(), now->stages.end(), [](const job::StageStatus& s) {
        return s.state == job::StageState::kRunning;
      });
    });
    return *job;
  }
  job::Job go_on(const std::string& id, const job::Selection& what) {
    auto accepted = c().continue_job(id, what, false, "test");
    EXPECT_TRUE(accepted) << accepted.error().line();
    return accepted ? wait(accepted->job->id) : job::Job{};
  }
  std::string refusal(const std::string& id, const job::Selection& what) {
    const auto accepted = c().continue_job(id, what, false, "test");
    return accepted ? "accepted" : accepted.error().reason;
  }
  Json fences(const std::string& stage) {
    return runs_.inventory(stage)["all"]["vars"]["clusterctl_fence_runs"];
  }
};

TEST_F(ControlTest, APausedJobStopsAtTheNextGateAndGoesOn) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  const uint64_t version = c().current(job.id)->resource_version;
  ASSERT_TRUE(c().pause_job(job.id));
  EXPECT_EQ(c().current(job.id)->resource_version, version) << "twice is once";
  runs_.hold = false;
  until_state(job.id, job::State::kPaused);
  EXPECT_THAT(runs_.stages(), ElementsAre("check"));
  ASSERT_TRUE(c().resume_job(job.id));
  EXPECT_EQ(wait(job.id).state, job::State::kSucceeded);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify"));
  EXPECT_EQ(lifecycle("w1"), "Allocated");
}

TEST_F(ControlTest, APauseSurvivesARestart) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  runs_.hold = false;
  until_state(job.id, job::State::kPaused);
  clock_.advance(seconds(60));
  restart();
  EXPECT_EQ(c().current(job.id)->state, job::State::kPaused);
  EXPECT_THAT(runs_.stages(), ElementsAre("check"));
  ASSERT_TRUE(c().resume_job(job.id));
  const auto ended = wait(job.id);
  EXPECT_EQ(ended.state, job::State::kSucceeded);
  EXPECT_EQ(ended.pause.sum, seconds(60)) << "and is no time of the job";
}

TEST_F(ControlTest, APauseThatIsTakenBackInTimeStopsNothing) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  ASSERT_TRUE(c().resume_job(job.id));
  runs_.hold = false;
  EXPECT_EQ(wait(job.id).state, job::State::kSucceeded);
}

TEST_F(ControlTest, APausedJobKeepsItsNodes) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  runs_.hold = false;
  until_state(job.id, job::State::kPaused);
  const auto check = submit({{"kind", "check"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(check);
  const auto waiting = c().waiting(*c().state());
  ASSERT_TRUE(waiting.count(check->id));
  EXPECT_EQ(waiting.at(check->id).job, job.id);
  EXPECT_EQ(waiting.at(check->id).node, node("w1").id);
  ASSERT_TRUE(c().resume_job(job.id));
  EXPECT_EQ(wait(check->id).state, job::State::kSucceeded);
}

TEST_F(ControlTest, CancelOfAPausedJobEndsIt) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  runs_.hold = false;
  until_state(job.id, job::State::kPaused);
  ASSERT_TRUE(c().cancel_job(job.id, false));
  EXPECT_EQ(wait(job.id).state, job::State::kCancelled);
  EXPECT_THAT(runs_.stages(), ElementsAre("check"));
  EXPECT_EQ(lifecycle("w1"), "Unallocated");
}

TEST_F(ControlTest, PauseIsRefusedWhereNothingWouldStop) {
  const auto job = held();
  const auto queued = submit({{"kind", "check"}, {"nodes", {"w1"}}});
  EXPECT_EQ(c().pause_job(queued->id).error().reason, "not_started");
  EXPECT_EQ(c().resume_job(job.id).error().reason, "not_paused");
  ASSERT_TRUE(c().cancel_job(job.id, false));
  const auto pause = c().pause_job(job.id);
  EXPECT_TRUE(!pause && (pause.error().reason == "cancelling" || pause.error().reason == "ended"));
  wait(job.id);
  EXPECT_EQ(c().pause_job(job.id).error().reason, "ended");

  runs_.starts = 0;
  const auto check = submit({{"kind", "check"}, {"nodes", {"m1"}}});
  until([&] { return runs_.starts > 0; });
  until([&] { return !c().current(check->id)->stages[0].run.empty(); });
  EXPECT_EQ(c().pause_job(check->id).error().reason, "no_gate");
  runs_.hold = false;
}

TEST_F(ControlTest, CancelTwiceIsCancelOnce) {
  const auto job = held();
  runs_.deaf = true;
  ASSERT_TRUE(c().cancel_job(job.id, false));
  const auto once = c().current(job.id)->resource_version;
  const auto events = c().events().last();
  ASSERT_TRUE(c().cancel_job(job.id, false));
  EXPECT_EQ(c().current(job.id)->resource_version, once);
  EXPECT_EQ(c().events().last(), events);
  ASSERT_TRUE(c().cancel_job(job.id, true));
  EXPECT_EQ(wait(job.id).state, job::State::kCancelled);
  EXPECT_TRUE(c().cancel_job(job.id, true)) << "it is what was asked for";
}

TEST_F(ControlTest, CancelWhileQueuedGivesEverythingBack) {
  const auto job = held();
  const auto queued = submit({{"kind", "check"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(c().cancel_job(queued->id, false));
  EXPECT_EQ(c().current(queued->id)->state, job::State::kCancelled);
  EXPECT_TRUE(c().cancel_job(queued->id, false));
  runs_.hold = false;
  EXPECT_EQ(wait(job.id).state, job::State::kSucceeded);
}

TEST_F(ControlTest, TheNextJobOfAnotherKindHasTheFence) {
  add_four();
  run(kCommissionAll);
  runs_.scripts["cleanup"].cancelled = true;
  const auto broken = run({{"kind", "decommission"}, {"nodes", {"w1"}}});
  const std::string id = broken.stages[0].run;
  EXPECT_THAT(node("w1").status.fence_runs, ElementsAre(id));
  EXPECT_TRUE(node("m1").status.fence_runs.empty());
  runs_.scripts["verify"].unreachable.insert("w1");
  run({{"kind", "verify"}, {"nodes", {"w1"}}});
  EXPECT_THAT(fences("verify"), ElementsAre(id));
  EXPECT_THAT(node("w1").status.fence_runs, Contains(id)) << "it was not reached";
  restart();
  EXPECT_THAT(node("w1").status.fence_runs, Contains(id));
  runs_.scripts["verify"].unreachable.clear();
  run({{"kind", "verify"}, {"nodes", {"w1"}}});
  EXPECT_TRUE(node("w1").status.fence_runs.empty()) << "the fence ended well there";
  runs_.scripts["cleanup"] = {};
  run({{"kind", "decommission"}, {"nodes", {"w1"}}});
  EXPECT_TRUE(fences("cleanup").empty());
}

TEST_F(ControlTest, ResumeGoesOnFromTheStageWithoutCleaning) {
  add_four();
  runs_.scripts["site"].interrupted = true;
  const auto broken = run(kCommissionAll);
  ASSERT_EQ(broken.state, job::State::kInterrupted);
  runs_.scripts["site"] = {};
  const auto job = go_on(broken.id, kResume);
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "site", "verify"));
  EXPECT_THAT(fences("site"), Contains(broken.stages[1].run));
  EXPECT_EQ(job.continuation.continues, broken.id);
  EXPECT_EQ(c().current(broken.id)->continuation.continued_by, job.id);
  EXPECT_EQ(lifecycle("m1"), "Allocated");
  EXPECT_FALSE(has("m1", "Dirty"));
  EXPECT_FALSE(has("m1", "Interrupted"));
  EXPECT_TRUE(node("m1").status.fence_runs.empty());
  EXPECT_EQ(refusal(broken.id, kResume), "continued");
  EXPECT_EQ(refusal(job.id, kResume), "succeeded");
}

TEST_F(ControlTest, ResumeTakesTheNodesThatAreNotDone) {
  add_four();
  run({{"kind", "commission"}, {"nodes", {"m1", "m2", "m3"}}});
  add("w2", "10.0.0.12", "service-worker");
  runs_.scripts["site"].failing["w2"] = "docker: no space";
  const auto failed =
      run({{"kind", "commission"}, {"nodes", {"w1", "w2"}}, {"keep_on_failure", true}});
  ASSERT_EQ(failed.state, job::State::kFailed);
  EXPECT_TRUE(has("w2", "Dirty"));
  runs_.scripts["site"] = {};
  const size_t before = runs_.prepared.size();
  const auto preview = c().continue_job(failed.id, kResume, true, "test");
  ASSERT_TRUE(preview) << preview.error().line();
  EXPECT_THAT(preview->nodes, ElementsAre("w2"));
  EXPECT_EQ(preview->plan["stages"].size(), 2U) << preview->plan;
  EXPECT_TRUE(c().current(failed.id)->continuation.continued_by.empty());
  const auto job = go_on(failed.id, kResume);
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_EQ(runs_.prepared.size(), before + 2);
  EXPECT_THAT(runs_.targets("site"), ElementsAre("w2"));
  EXPECT_THAT(runs_.targets("verify"), ElementsAre("w2"));
  EXPECT_EQ(lifecycle("w2"), "Allocated");
}

// Verification broke off: nothing is converged again, and what fails then is cleaned all the same.
TEST_F(ControlTest, AResumedVerificationThatFailsIsCleanedUp) {
  add_four();
  runs_.scripts["verify"].interrupted = true;
  const auto broken = run(kCommissionAll);
  runs_.scripts["verify"].interrupted = false;
  runs_.scripts["verify"].unhealthy["w1"] = "docker";
  const auto job = go_on(broken.id, kResume);
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "site", "verify", "verify", "cleanup"));
  EXPECT_THAT(runs_.targets("cleanup"), ElementsAre("w1"));
  EXPECT_EQ(lifecycle("w1"), "Unallocated");
  EXPECT_FALSE(has("w1", "Dirty"));
  EXPECT_EQ(lifecycle("m1"), "Allocated");
}

TEST_F(ControlTest, ResumeOfACancelledDecommission) {
  add_four();
  run(kCommissionAll);
  runs_.scripts["cleanup"].cancelled = true;
  const auto broken = run({{"kind", "decommission"}, {"nodes", {"w1"}}});
  ASSERT_EQ(broken.state, job::State::kCancelled);
  EXPECT_EQ(lifecycle("w1"), "Cancelled");
  runs_.scripts["cleanup"] = {};
  EXPECT_EQ(go_on(broken.id, kResume).state, job::State::kSucceeded);
  EXPECT_EQ(lifecycle("w1"), "Decommissioned");
}

TEST_F(ControlTest, RetryTakesTheFailedNodes) {
  add_four();
  run({{"kind", "commission"}, {"nodes", {"m1", "m2", "m3"}}});
  add("w2", "10.0.0.12", "service-worker");
  runs_.scripts["site"].failing["w2"] = "docker: no space";
  const auto failed = run({{"kind", "commission"}, {"nodes", {"w1", "w2"}}});
  EXPECT_EQ(refusal(failed.id, {false, false, true}), "no_match");
  runs_.scripts["site"] = {};
  const auto job = go_on(failed.id, kRetryFailed);
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  ASSERT_EQ(job.nodes.size(), 1U);
  EXPECT_EQ(job.nodes[0].name, "w2");
  EXPECT_THAT(runs_.targets("check"), ElementsAre("w2")) << "it begins anew";
  EXPECT_EQ(job.continuation.continues, failed.id);
}

TEST_F(ControlTest, NodesInAnotherJobAreNotTakenFromIt) {
  add_four();
  runs_.scripts["site"].interrupted = true;
  const auto broken = run(kCommissionAll);
  runs_.scripts["site"] = {};
  runs_.hold = true;
  const auto other = submit({{"kind", "check"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(other);
  const auto refused = c().continue_job(broken.id, kResume, false, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "busy");
  EXPECT_THAT(refused.error().message, HasSubstr(other->id));
  EXPECT_EQ(refusal(other->id, kResume), "not_ended");
  runs_.hold = false;
  wait(other->id);
  EXPECT_EQ(run(kCommissionAll).state, job::State::kSucceeded);
  EXPECT_EQ(refusal(broken.id, kResume), "superseded") << "the nodes are not as it left them";
}

TEST_F(ControlTest, SecretsOfAJobThatCanBeResumedAreKeptForAWeek) {
  add_four();
  runs_.scripts["site"].interrupted = true;
  Json request = kCommissionAll;
  request["vars"] = {{"ucp_admin_password", "Hush!"}, {"plain", "word"}};
  const auto broken = run(request);
  ASSERT_TRUE(job::continuable_until(broken));
  runs_.scripts["site"].interrupted = true;
  const auto again = go_on(broken.id, kResume);
  ASSERT_EQ(again.state, job::State::kInterrupted);
  EXPECT_THAT(runs_.prepared.back().files.vars, HasSubstr("Hush!"));
  EXPECT_EQ(c().state()->secrets.size(), 1U) << "moved, not copied";
  EXPECT_THAT(dump_json(job::to_record(again)), Not(HasSubstr("Hush!")));

  clock_.advance(job::kSecretsKept + seconds(1));
  until([&] { return c().state()->secrets.empty(); });
  EXPECT_EQ(refusal(again.id, kResume), "secrets_gone");
  runs_.scripts["site"] = {};
  EXPECT_EQ(run(kCommissionAll).state, job::State::kSucceeded);
}

TEST_F(ControlTest, SecretsGoWithAJobThatSucceeds) {
  add_four();
  runs_.scripts["site"].interrupted = true;
  Json request = kCommissionAll;
  request["vars"] = {{"ucp_admin_password", "Hush!"}};
  const auto broken = run(request);
  runs_.scripts["site"] = {};
  EXPECT_EQ(go_on(broken.id, kResume).state, job::State::kSucceeded);
  EXPECT_TRUE(c().state()->secrets.empty());
}

TEST_F(ControlTest, ATimeoutEndsTheJobAtATaskAndSaysSo) {
  add_four();
  runs_.hold = true;
  Json request = kCommissionAll;
  request["timeout"] = "10m";
  const auto job = submit(request);
  until([&] { return runs_.starts > 0; });
  clock_.advance(seconds(600));
  const auto ended = wait(job->id);
  EXPECT_EQ(ended.state, job::State::kFailed);
  EXPECT_EQ(ended.reason, "timeout");
  EXPECT_THAT(ended.error, HasSubstr("not done within 10m00s in stage check"));
  EXPECT_FALSE(runs_.asked_to_end(true));
  EXPECT_EQ(lifecycle("m1"), "Unallocated");
}

TEST_F(ControlTest, SilenceThatGoesOnIsEndedAtOnce) {
  add_four();
  runs_.hold = runs_.deaf = true;
  Json request = kCommissionAll;
  request["silence_timeout"] = 90;
  const auto job = submit(request);
  until([&] { return runs_.starts > 0 && c().current(job->id)->stages[0].started; });
  runs_.last_sign = clock_.now().time_since_epoch().count();
  clock_.advance(seconds(90));
  until([&] { return runs_.asked_to_end(false); });
  EXPECT_FALSE(runs_.asked_to_end(true)) << "first it may end at a task";
  clock_.advance(seconds(30));
  const auto ended = wait(job->id);
  EXPECT_TRUE(runs_.asked_to_end(true));
  EXPECT_EQ(ended.state, job::State::kFailed);
  EXPECT_EQ(ended.reason, "silence_timeout");
  EXPECT_EQ(ended.nodes[0].message, ended.error);
}

class NarrowTest : public ControlTest {
 protected:
  NarrowTest() {
    settings_.max_parallel_runs = 1;
    restart();
  }
};

TEST_F(NarrowTest, WhatWaitsForAPlaceSaysSo) {
  const auto job = held();
  add("w2", "10.0.0.12", "service-worker");
  const auto waiting = submit({{"kind", "check"}, {"nodes", {"w2"}}});
  ASSERT_TRUE(waiting);
  EXPECT_EQ(c().waiting(*c().state()).at(waiting->id).reason, "parallel_runs");
  EXPECT_EQ(c().current(waiting->id)->state, job::State::kQueued);
  runs_.hold = false;
  EXPECT_EQ(wait(waiting->id).state, job::State::kSucceeded);
}

TEST_F(NarrowTest, APausedJobThatIsResumedWaitsForAPlace) {
  const auto job = held();
  ASSERT_TRUE(c().pause_job(job.id));
  runs_.hold = false;
  until_state(job.id, job::State::kPaused);
  add("w2", "10.0.0.12", "service-worker");
  runs_.hold = true;
  const int starts = runs_.starts;
  const auto other = submit({{"kind", "check"}, {"nodes", {"w2"}}});
  until([&] { return runs_.starts > starts; });
  ASSERT_TRUE(c().resume_job(job.id));
  EXPECT_EQ(c().waiting(*c().state()).at(job.id).reason, "parallel_runs");
  EXPECT_EQ(c().current(job.id)->state, job::State::kPaused);
  runs_.hold = false;
  EXPECT_EQ(wait(other->id).state, job::State::kSucceeded);
  EXPECT_EQ(wait(job.id).state, job::State::kSucceeded);
}

TEST_F(NarrowTest, TheRemovalOfADeadNodeNeverWaitsBehindBulkWork) {
  add_four();
  run(kCommissionAll);
  add("w2", "10.0.0.12", "service-worker");
  add("w3", "10.0.0.13", "service-worker");
  runs_.hold = true;
  const int starts = runs_.starts;
  const auto bulk = submit({{"kind", "commission"}, {"nodes", {"w2"}}});
  until([&] { return runs_.starts > starts; });
  const auto queued = submit({{"kind", "commission"}, {"nodes", {"w3"}}});
  ASSERT_TRUE(bulk && queued);
  const auto removal =
      submit({{"kind", "decommission"}, {"nodes", {"w1"}}, {"force", true}, {"powered_off", true}});
  ASSERT_TRUE(removal) << removal.error().line();
  until_state(removal->id, job::State::kRunning);
  EXPECT_EQ(c().current(queued->id)->state, job::State::kQueued);
  runs_.hold = false;
  EXPECT_EQ(wait(removal->id).state, job::State::kSucceeded);
  EXPECT_EQ(wait(queued->id).state, job::State::kSucceeded);
}

}  // namespace
}  // namespace clusterctl::controller
