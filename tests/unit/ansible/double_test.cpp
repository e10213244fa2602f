// The stand-in for ansible-playbook keeps the contract: what it writes is what the decoder takes.
#include "ansible/rig.h"

namespace clusterctl::ansible {
namespace {

class Double : public AnsibleRig {
 protected:
  void SetUp() override {
    AnsibleRig::SetUp();
    add("n1", fleet::Role::kManager);
    add("n2", fleet::Role::kManager);
    add("w1", fleet::Role::kWorker, {"base", "docker", "swarm"});
    input.managers = {"n1", "n2"};
    input.initiator = "n1";
  }
  int play(const std::string& name) {
    write("playbooks/" + name + ".yml", "---\n");
    std::error_code ignored;
    fs::remove(top / "run/events.jsonl", ignored);
    return AnsibleRig::run(SOURCE_DIR "/tests/doubles/ansible-playbook", name + ".yml").status.code;
  }
  fleet::ServiceStatus status(const RunResult& r, const std::string& host,
                              const std::string& service) {
    const Json* fact = r.fact(host, "clusterctl_service_" + service);
    EXPECT_NE(fact, nullptr) << host << " " << service;
    const auto out = decode_service_fact(fact ? *fact : Json(), Time{});
    EXPECT_TRUE(out);
    return out.value_or(fleet::ServiceStatus{});
  }
};

TEST_F(Double, EveryPlaybookKeepsTheContract) {
  for (const char* name : {"check", "site", "verify", "observe", "show", "cleanup", "forget"}) {
    EXPECT_EQ(play(name), 0) << name;
    const RunResult r = result();
    EXPECT_EQ(r.bad_lines(), 0) << name;
    EXPECT_TRUE(r.complete()) << name;
    for (const char* host : {"n1", "n2", "w1"})
      EXPECT_EQ(r.in_stats(host), name != std::string("forget")) << name;
    EXPECT_EQ(r.touched("n1"), name == std::string("site") || name == std::string("cleanup"))
        << name;
  }
}

TEST_F(Double, FactsTellOfACluster) {
  play("check");
  EXPECT_EQ(*result().fact("n1", "clusterctl_problems"), Json::array());
  EXPECT_TRUE(decode_hardware_fact(*result().fact("w1", "clusterctl_hardware")));
  play("verify");
  EXPECT_FALSE(status(result(), "n1", "etcd").healthy);
  EXPECT_TRUE(result().cause("n1"));
  play("site");
  EXPECT_EQ(result().changed_services("w1"), (std::vector<std::string>{"base", "docker", "swarm"}));
  EXPECT_EQ(play("verify"), 0);
  const RunResult r = result();
  EXPECT_EQ(status(r, "n1", "etcd").members.size(), 2u);
  EXPECT_EQ(status(r, "n2", "swarm").members.size(), 3u);
  EXPECT_TRUE(status(r, "n1", "etcd").members[0].leader);
  EXPECT_EQ(status(r, "w1", "swarm").role, "worker");
  EXPECT_FALSE(status(r, "n1", "etcd").member_id.empty());
  play("site");
  EXPECT_TRUE(result().changed_services("n1").empty());
}

TEST_F(Double, FailuresHaveTheirCause) {
  write(
      "double/control.json",
      R"({"site": ["fail-host:n1:etcd:no space left", "ignored-failure:n1:docker"], "down": ["w1"]})");
  EXPECT_EQ(play("site"), 2);
  const RunResult r = result();
  EXPECT_EQ(r.cause("n1")->line(), "n1: etcd: main etcd: no space left");
  EXPECT_EQ(r.cause("n2")->message, "not attempted: first manager n1 failed");
  EXPECT_TRUE(r.cause("w1")->unreachable);
  EXPECT_FALSE(r.touched("w1"));
}

TEST_F(Double, ObserveReportsTheDeadAsUnreachable) {
  play("site");
  write("double/control.json", R"({"down": ["n1"]})");
  EXPECT_EQ(play("observe"), 0);
  const RunResult r = result();
  EXPECT_FALSE(r.cause("n1"));
  EXPECT_EQ(r.fact("n1", "clusterctl_service_etcd"), nullptr);
  const auto seen = status(r, "n2", "etcd");
  EXPECT_FALSE(seen.members[0].reachable);
  EXPECT_TRUE(seen.members[1].reachable);
  EXPECT_FALSE(seen.healthy);
}

}  // namespace
}  // namespace clusterctl::ansible
