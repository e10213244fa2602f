#include "job/locks.h"

#include <gtest/gtest.h>

namespace clusterctl::job {
namespace {

Job make(std::string id, std::string kind, std::vector<std::string> targets,
         std::vector<std::string> peers = {}, fleet::Role role = fleet::Role::kWorker,
         State state = State::kQueued) {
  Job job;
  job.id = std::move(id);
  job.kind = std::move(kind);
  job.state = state;
  for (const std::string& node : targets) {
    NodeOutcome outcome;
    outcome.node = node;
    job.nodes.push_back(outcome);
    job.roles[node] = role;
  }
  StageStatus stage;
  stage.def.peers = std::move(peers);
  job.stages.push_back(stage);
  return job;
}

TEST(Locks, JobsOnDisjointNodesRunSideBySideEvenOverOnePeer) {
  EXPECT_FALSE(
      conflict(make("a", "commission", {"w1"}, {"m1"}), make("b", "commission", {"w2"}, {"m1"})));
}

TEST(Locks, ATargetIsExclusive) {
  const auto c =
      conflict(make("a", "commission", {"w1", "w2"}), make("b", "decommission", {"w2", "w3"}));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->job, "a");
  EXPECT_EQ(c->node, "w2");
}

TEST(Locks, APeerMayNotBeTakenApartWhileItIsUsed) {
  const Job worker = make("a", "commission", {"w1"}, {"m1"});
  const Job manager = make("b", "decommission", {"m1"}, {"m2"}, fleet::Role::kManager);
  EXPECT_TRUE(conflict(worker, manager));
  EXPECT_TRUE(conflict(manager, worker));
}

TEST(Locks, ADrainHindersOnlyWhatWorksOnTheSameNode) {
  const Job drain = make("a", "drain", {"m1"}, {"m2"}, fleet::Role::kManager);
  EXPECT_FALSE(conflict(drain, make("b", "commission", {"w1"}, {"m1"})));
  EXPECT_FALSE(conflict(make("b", "commission", {"m3"}, {"m1"}, fleet::Role::kManager), drain));
  EXPECT_TRUE(conflict(drain, make("b", "verify", {"m1"})));
  EXPECT_TRUE(conflict(drain, make("b", "decommission", {"m2"}, {}, fleet::Role::kManager)))
      << "the manager it goes through";
}

TEST(Locks, ReadersShareWithReadersOnly) {
  EXPECT_FALSE(conflict(make("a", "check", {"w1"}), make("b", "verify", {"w1"})));
  EXPECT_TRUE(conflict(make("a", "check", {"w1"}), make("b", "commission", {"w1"})));
  EXPECT_TRUE(conflict(make("a", "commission", {"w1"}), make("b", "check", {"w1"})));
}

TEST(Locks, OneManagerDisruptionAtATime) {
  const Job a = make("a", "commission", {"m1"}, {}, fleet::Role::kManager);
  const Job b = make("b", "commission", {"m2"}, {}, fleet::Role::kManager);
  const auto c = conflict(a, b);
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->node.empty());
}

TEST(Locks, WaitersAreServedInOrder) {
  const Job running = make("1", "commission", {"a"}, {}, fleet::Role::kWorker, State::kRunning);
  const Job first = make("2", "commission", {"a", "b"});
  const Job second = make("3", "decommission", {"b"});
  const std::vector<const Job*> open{&running, &first, &second};
  EXPECT_FALSE(blocked_by(open, 0));
  EXPECT_EQ(blocked_by(open, 1)->job, "1");
  EXPECT_EQ(blocked_by(open, 2)->job, "2")
      << "a later job must not overtake the one that waits for its node";
}

}  // namespace
}  // namespace clusterctl::job
