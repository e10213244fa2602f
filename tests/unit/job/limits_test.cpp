#include "job/limits.h"

#include <gtest/gtest.h>

namespace clusterctl::job {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Time at(int s) {
  return Time(seconds(s));
}

Job running() {
  Job job;
  job.state = State::kRunning;
  job.started = at(100);
  StageStatus stage;
  stage.def.name = "site";
  stage.run = "r1";
  stage.state = StageState::kRunning;
  stage.started = at(110);
  job.stages.push_back(stage);
  return job;
}

TEST(Limits, AreOffUnlessAskedFor) {
  EXPECT_FALSE(overrun(running(), at(1000000), at(0)));
}

TEST(Limits, TimeoutCountsTheWholeJobWithoutItsPauses) {
  Job job = running();
  job.request.timeout = seconds(600);
  EXPECT_FALSE(overrun(job, at(699), at(699)));
  const auto passed = overrun(job, at(700), at(700));
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->reason, "timeout");
  EXPECT_EQ(passed->error, "not done within 10m00s in stage site: stopped by its timeout");
  EXPECT_EQ(passed->at, at(700));
  job.pause.sum = milliseconds(300000);
  EXPECT_FALSE(overrun(job, at(999), at(999)));
  EXPECT_TRUE(overrun(job, at(1000), at(1000)));
}

TEST(Limits, SilenceCountsFromTheLastSignOfThePresentRun) {
  Job job = running();
  job.request.silence_timeout = seconds(90);
  EXPECT_FALSE(overrun(job, at(199), std::nullopt)) << "it began at 110";
  EXPECT_TRUE(overrun(job, at(200), std::nullopt));
  EXPECT_FALSE(overrun(job, at(1000), at(911)));
  const auto passed = overrun(job, at(1001), at(911));
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->reason, "silence_timeout");
  EXPECT_EQ(passed->error,
            "no sign of life for 1m30s in stage site: stopped by its silence timeout");
  job.stages[0].run.clear();
  job.stages[0].state = StageState::kPending;
  EXPECT_FALSE(overrun(job, at(1001), at(911))) << "between stages there is nobody to be silent";
}

TEST(Limits, NothingIsEndedTwiceOrWhileItPutsNodesInOrder) {
  Job job = running();
  job.request.timeout = job.request.silence_timeout = seconds(1);
  EXPECT_TRUE(overrun(job, at(500), at(0)));
  Job cancelled = job;
  cancelled.cancel_requested = true;
  EXPECT_FALSE(overrun(cancelled, at(500), at(0)));
  Job paused = job;
  paused.state = State::kPaused;
  EXPECT_FALSE(overrun(paused, at(500), at(0)));
  job.stages[0].closing = true;
  EXPECT_FALSE(overrun(job, at(500), at(0)));
}

}  // namespace
}  // namespace clusterctl::job
