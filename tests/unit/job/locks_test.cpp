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

// What `waiting` has to wait for because of `holder`, which runs.
std::optional<Conflict> conflict(Job holder, const Job& waiting) {
  holder.state = State::kRunning;
  return conflicts({&holder, &waiting})[1];
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
  const Job third = make("4", "commission", {"c"});
  const auto found = conflicts({&running, &first, &second, &third});
  EXPECT_FALSE(found[0]);
  EXPECT_EQ(found[1]->job, "1");
  EXPECT_EQ(found[1]->node, "a");
  EXPECT_EQ(found[1]->reason, "node");
  EXPECT_EQ(found[2]->job, "2") << "a later job must not overtake the one that waits for its node";
  EXPECT_FALSE(found[3]) << "what has nothing to do with them does not wait";
}

TEST(Locks, APausedJobKeepsItsNodes) {
  const Job paused = make("2", "commission", {"a"}, {}, fleet::Role::kWorker, State::kPaused);
  const Job waiting = make("1", "decommission", {"a"});
  EXPECT_EQ(conflicts({&waiting, &paused})[0]->job, "2");
}

Job removal(std::string id, std::vector<std::string> dead, std::string survivor,
            fleet::Role role = fleet::Role::kWorker) {
  Job job = make(std::move(id), "decommission", std::move(dead), {"m2", "m3"}, role);
  job.request.force = job.request.powered_off = true;
  job.stages[0].def.nodes = {std::move(survivor)};
  return job;
}

TEST(Locks, TheRemovalOfADeadNodeDoesNotWaitBehindBulkWork) {
  const Job bulk = make("1", "commission", {"w1", "w2"}, {"m1", "m2", "dead"}, fleet::Role::kWorker,
                        State::kRunning);
  const Job queued = make("2", "decommission", {"dead", "w1"});
  const Job urgent_job = removal("3", {"dead"}, "m1");
  EXPECT_TRUE(urgent(urgent_job));
  EXPECT_FALSE(conflicts({&bulk, &queued, &urgent_job})[2])
      << "neither because others know it as a manager, nor because somebody waits for it";
  EXPECT_FALSE(urgent(make("4", "decommission", {"dead"})));
}

TEST(Locks, TheRemovalOfADeadNodeWaitsForWorkOnThatNodeAndOnItsSurvivor) {
  EXPECT_EQ(conflict(make("1", "commission", {"dead"}), removal("3", {"dead"}, "m1"))->node,
            "dead");
  EXPECT_EQ(conflict(make("1", "decommission", {"m1"}), removal("3", {"dead"}, "m1"))->node, "m1");
  const auto c = conflict(make("1", "commission", {"m4"}, {}, fleet::Role::kManager),
                          removal("3", {"dead"}, "m1", fleet::Role::kManager));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->reason, "managers");
}

// 500 waiting jobs on 5000 nodes: told at once, because every start and every list asks.
TEST(Locks, ALongQueueIsOneWalk) {
  std::vector<Job> jobs;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::string> nodes;
    for (int k = 0; k < 10; ++k) nodes.push_back("n" + std::to_string((i * 10 + k) % 5000));
    jobs.push_back(make(std::to_string(1000 + i), "commission", nodes, {"m1", "m2", "m3"}));
  }
  jobs.push_back(make("9999", "decommission", {"n4999"}));
  std::vector<const Job*> open;
  for (const Job& job : jobs) open.push_back(&job);
  const auto found = conflicts(open);
  EXPECT_EQ(found.back()->job, "1499");
  EXPECT_FALSE(found[499]);
}

}  // namespace
}  // namespace clusterctl::job
