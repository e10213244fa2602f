#include "job/causes.h"

#include <gtest/gtest.h>

namespace clusterctl::job {
namespace {

NodeOutcome failed(const std::string& name, const std::string& message,
                   const std::string& code = "") {
  NodeOutcome n;
  n.node = "id-" + name;
  n.name = name;
  n.state = OutcomeState::kFailed;
  n.stage = "site";
  n.service = "docker";
  n.task = "Install";
  n.message = message;
  n.code = code;
  n.hint = code.empty() ? "" : "mend " + name;
  return n;
}

Job job_of(std::vector<NodeOutcome> nodes) {
  Job job;
  job.nodes = std::move(nodes);
  return job;
}

TEST(Causes, IdenticalFailuresAreOneGroup) {
  const Job job =
      job_of({failed("n1", "no space", "no_space"), failed("n2", "no space", "no_space"),
              failed("n3", "port in use"), failed("n4", "no space", "no_space")});
  const auto groups = group_causes(job, nullptr);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].nodes, (std::vector<std::string>{"n1", "n2", "n4"}));
  EXPECT_EQ(groups[0].hint, "mend n1");
  EXPECT_EQ(cause_summary(groups),
            "n1: docker: Install: no space (same on 2 other nodes; 1 node failed otherwise)");
}

TEST(Causes, OneFailureIsJustItself) {
  Job job = job_of({failed("n1", "no space")});
  EXPECT_EQ(cause_summary(group_causes(job, nullptr)), "n1: docker: Install: no space");
  job.nodes[0].state = OutcomeState::kSucceeded;
  EXPECT_TRUE(group_causes(job, nullptr).empty());
}

// What differs from node to node and means the same.
TEST(Causes, NamesAddressesAndProcessesOfTheNodeDoNotMatter) {
  fleet::Snapshot fleet;
  for (const char* name : {"n1", "n10"}) {
    fleet::Node node;
    node.id = std::string("id-") + name;
    node.name = name;
    node.spec.addr = std::string(name) + ".example";
    fleet.nodes[node.id] = node;
  }
  const auto groups = [&](const std::string& a, const std::string& b) {
    return group_causes(job_of({failed("n1", a), failed("n10", b)}), &fleet).size();
  };
  EXPECT_EQ(groups("connect to host n1.example port 22", "connect to host n10.example port 22"),
            1u);
  EXPECT_EQ(groups("connect to 10.0.0.1 port 22: x", "connect to 10.0.0.12 port 22: x"), 1u);
  EXPECT_EQ(groups("held by process 812 (apt)", "held by process 9 (apt)"), 1u);
  EXPECT_EQ(groups("n1 is a member", "n10 is a member"), 1u);
  // Numbers that mean something stay.
  EXPECT_EQ(groups("port 2379 is in use", "port 2380 is in use"), 2u);
  EXPECT_EQ(groups("version 1.2.3 is missing", "version 1.2.4 is missing"), 2u);
}

TEST(Causes, ServiceTaskAndCodeTellFailuresApart) {
  Job job = job_of({failed("n1", "x"), failed("n2", "x"), failed("n3", "x"), failed("n4", "x")});
  job.nodes[1].service = "etcd";
  job.nodes[2].task = "Start";
  job.nodes[3].code = "other";
  EXPECT_EQ(group_causes(job, nullptr).size(), 4u);
}

TEST(Causes, FollowUpsComeLast) {
  const Job job = job_of({failed("n1", "not attempted: first manager m1 failed", "not_attempted"),
                          failed("n2", "not attempted: first manager m1 failed", "not_attempted"),
                          failed("m1", "no space")});
  const auto groups = group_causes(job, nullptr);
  EXPECT_EQ(cause_summary(groups), "m1: docker: Install: no space (2 nodes failed otherwise)");
}

}  // namespace
}  // namespace clusterctl::job
