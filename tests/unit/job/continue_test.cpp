#include "job/continue.h"

#include <gmock/gmock.h>

namespace clusterctl::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

StageStatus stage(std::string name, StageState state, std::vector<std::string> nodes) {
  StageStatus s;
  s.def.name = std::move(name);
  s.def.nodes = s.nodes = std::move(nodes);
  s.state = state;
  s.run = state == StageState::kSkipped ? "" : "run-" + s.def.name;
  return s;
}

NodeOutcome node(std::string id, OutcomeState state, std::string failed_in = "",
                 bool touched = false, std::string cleanup = "") {
  NodeOutcome n;
  n.node = id;
  n.name = std::move(id);
  n.state = state;
  n.stage = std::move(failed_in);
  n.touched = touched;
  n.cleanup = std::move(cleanup);
  return n;
}

// a failed in site, b was unhealthy, c is done, d was not reached any more.
Job commission() {
  Job job;
  job.id = "01old";
  job.kind = "commission";
  job.state = State::kFailed;
  job.nodes = {node("a", OutcomeState::kFailed, "site", true),
               node("b", OutcomeState::kFailed, "verify", true),
               node("c", OutcomeState::kSucceeded, "", true), node("d", OutcomeState::kUntouched)};
  job.stages = {stage("check", StageState::kSucceeded, {"a", "b", "c", "d"}),
                stage("site", StageState::kFailed, {"a", "b", "c"}),
                stage("verify", StageState::kFailed, {"b", "c"})};
  return job;
}

std::vector<std::string> names(const std::vector<const NodeOutcome*>& nodes) {
  std::vector<std::string> out;
  for (const NodeOutcome* n : nodes) out.push_back(n->name);
  return out;
}

TEST(Continue, ChoosesNodes) {
  const Job job = commission();
  EXPECT_THAT(names(nodes_to_continue(job, {true, false, false})), ElementsAre("a", "b", "d"));
  EXPECT_THAT(names(nodes_to_continue(job, {false, true, false})), ElementsAre("a", "b"));
  EXPECT_THAT(names(nodes_to_continue(job, {false, false, true})), ElementsAre("d"));
  EXPECT_THAT(names(nodes_to_continue(job, {false, true, true})), ElementsAre("a", "b", "d"));
}

TEST(Continue, EachNodeGoesOnWhereItWas) {
  const Job job = commission();
  EXPECT_THAT(passed_stages(job, job.nodes[0]), UnorderedElementsAre("check", "cleanup"));
  EXPECT_THAT(passed_stages(job, job.nodes[1]), UnorderedElementsAre("check", "site", "cleanup"));
  EXPECT_THAT(passed_stages(job, job.nodes[3]), UnorderedElementsAre("check"));
}

TEST(Continue, AStageThatBrokeOffIsBehindNobody) {
  Job job = commission();
  job.stages[1].state = StageState::kInterrupted;
  EXPECT_THAT(passed_stages(job, job.nodes[1]), UnorderedElementsAre("check", "cleanup"));
  job.stages[1].state = StageState::kCancelled;
  EXPECT_THAT(passed_stages(job, job.nodes[1]), UnorderedElementsAre("check", "cleanup"));
}

TEST(Continue, WhatWasCleanedBeginsAnew) {
  Job job = commission();
  job.nodes[0].cleanup = "cleaned";
  EXPECT_THAT(passed_stages(job, job.nodes[0]), IsEmpty());
  job.nodes[0].cleanup = "failed: no route to host";
  EXPECT_THAT(passed_stages(job, job.nodes[0]), IsEmpty()) << "half of it may be gone";
  job.nodes[0].cleanup = "kept";
  EXPECT_THAT(passed_stages(job, job.nodes[0]), UnorderedElementsAre("check", "cleanup"));
}

TEST(Continue, ACleanupThatWasOwedAndNotDoneStaysOwed) {
  Job job = commission();
  job.stages.insert(job.stages.begin(), stage("cleanup", StageState::kInterrupted, {"a"}));
  job.stages[1].state = job.stages[2].state = job.stages[3].state = StageState::kSkipped;
  EXPECT_THAT(passed_stages(job, job.nodes[0]), IsEmpty());
  job.stages[0].state = StageState::kSucceeded;
  EXPECT_THAT(passed_stages(job, job.nodes[0]), UnorderedElementsAre("cleanup"));
}

TEST(Continue, ADecommissionRepeatsItsCleanup) {
  Job job = commission();
  job.kind = "decommission";
  job.stages = {stage("cleanup", StageState::kFailed, {"a", "b"})};
  job.nodes = {node("a", OutcomeState::kFailed, "cleanup", true)};
  EXPECT_THAT(passed_stages(job, job.nodes[0]), IsEmpty());
}

TEST(Continue, WhatEarlierJobsOfTheChainHadPassedCounts) {
  Job job = commission();
  job.continuation.passed["d"] = {"check", "site"};
  EXPECT_THAT(passed_stages(job, job.nodes[3]), UnorderedElementsAre("check", "site"));
}

TEST(Continue, StagesLoseTheNodesThatHaveThemBehind) {
  Job job;
  job.nodes = {node("a", OutcomeState::kPending), node("m", OutcomeState::kPending)};
  job.roles = {{"a", fleet::Role::kWorker}, {"m", fleet::Role::kManager}};
  job.continuation.passed = {{"a", {"check", "observe"}}, {"m", {"check", "site"}}};
  job.stages = {stage("check", StageState::kPending, {"a", "m"}),
                stage("observe", StageState::kPending, {"a"}),
                stage("site", StageState::kPending, {"m", "a"})};
  job.stages[2].def.vars.initiator = "m";
  leave_out_passed(job);
  EXPECT_EQ(job.stages[0].state, StageState::kSkipped);
  EXPECT_THAT(job.stages[1].def.nodes, ElementsAre("a")) << "the quorum is looked at again";
  EXPECT_THAT(job.stages[2].def.nodes, ElementsAre("a"));
  EXPECT_THAT(job.stages[2].def.peers, ElementsAre("m")) << "the others join through it";
  EXPECT_EQ(job.stages[2].def.vars.peer, "m");
  EXPECT_EQ(job.stages[2].def.vars.initiator, "");
}

TEST(Continue, RefusalsHaveStableCodes) {
  Job job = commission();
  EXPECT_TRUE(continuable(job));
  job.state = State::kRunning;
  EXPECT_EQ(check_continuable(job).error().reason, "not_ended");
  job.state = State::kSucceeded;
  EXPECT_EQ(check_continuable(job).error().reason, "succeeded");
  job.state = State::kInterrupted;
  job.continuation.secrets_gone = true;
  EXPECT_EQ(check_continuable(job).error().reason, "secrets_gone");
  job.continuation.continued_by = "01new";
  EXPECT_EQ(check_continuable(job).error().reason, "continued");
  EXPECT_NE(check_continuable(job).error().message.find("01new"), std::string::npos);
}

TEST(Continue, SaysUntilWhen) {
  Job job = commission();
  job.ended = Time(std::chrono::hours(1));
  EXPECT_FALSE(continuable_until(job)) << "without secrets there is no limit";
  job.continuation.keeps_secrets = true;
  EXPECT_EQ(continuable_until(job), Time(std::chrono::hours(1)) + kSecretsKept);
}

}  // namespace
}  // namespace clusterctl::job
