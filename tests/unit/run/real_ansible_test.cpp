// Slow: the real Ansible with the callback plugin under the shim. Skipped, loudly, where one of
// them is missing.
#include "ansible/events.h"
#include "run/rig.h"

namespace clusterctl::run {
namespace {

class RealRun : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    const fs::path plugins = fs::path(SOURCE_DIR) / "playbooks/plugins/callback";
    if (::access("/usr/bin/ansible-playbook", X_OK) != 0 ||
        !fs::exists(plugins / "clusterctl_events.py")) {
      GTEST_SKIP() << "NOT TESTED: needs ansible-playbook and the callback plugin";
    }
    std::ofstream(settings.ansible_config)
        << "[defaults]\nforce_valid_group_names = ignore\ncallbacks_enabled = "
           "clusterctl_events\ncallback_plugins = "
        << plugins.string() << "\n";
    settings.ansible_playbook = "ansible-playbook";
    remake();
  }
  void playbook(const std::string& tasks) {
    std::ofstream(settings.playbooks / "site.yml")
        << "- hosts: clusterctl_targets\n  gather_facts: false\n  connection: local\n  tasks:\n"
        << tasks;
  }
  ansible::RunResult result() {
    ansible::RunResult out;
    for (const std::string& line : lines) out.feed_line(line);
    return out;
  }
};

TEST_F(RealRun, SlowEventsComeThroughAndSecretsDoNot) {
  playbook(
      "    - {debug: {msg: \"{{ password }} {{ token }}\"}}\n    - {command: \"echo {{ password "
      "}}\"}\n    - {command: pwd}\n");
  begin();
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 0) << output();
  const auto r = result();
  EXPECT_TRUE(r.complete());
  EXPECT_EQ(r.bad_lines(), 0);
  EXPECT_EQ(r.hosts().at("n1").module_runs, 2);
  EXPECT_NE(output().find("***"), std::string::npos);
  for (const char* name : {"output.log", "events.jsonl"}) {
    const std::string text = *read_file(runs->dir("r1") / name);
    EXPECT_EQ(text.find("S3cr3t!value"), std::string::npos) << name;
    EXPECT_EQ(text.find("t0k3n"), std::string::npos) << name;
  }
}

TEST_F(RealRun, SlowCancelEndsItAtTheNextTask) {
  const std::string gate = (top / "gate").string();
  playbook("    - {command: \"touch " + gate + ".waiting\"}\n    - {wait_for: {path: " + gate +
           ", sleep: 1}}\n    - {command: \"touch " + gate + ".too-far\"}\n");
  begin();
  ASSERT_TRUE(eventually([&] { return fs::exists(gate + ".waiting"); }));
  ASSERT_TRUE(runs->cancel("r1", false));
  std::ofstream(top / "gate") << "open";
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 250) << output();
  EXPECT_TRUE(state.exit->cancelled);
  EXPECT_TRUE(result().cancelled());
  EXPECT_FALSE(fs::exists(gate + ".too-far"));
}

TEST_F(RealRun, SlowCancelNowLeavesNothing) {
  settings.kill_after = std::chrono::seconds(2);
  remake();
  playbook("    - {shell: \"touch " + (top / "here").string() +
           "; trap '' TERM; while :; do sleep 1; done\"}\n");
  begin();
  ASSERT_TRUE(eventually([&] { return fs::exists(top / "here"); }));
  ASSERT_TRUE(runs->cancel("r1", true));
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_TRUE(state.exit->cancelled);
  EXPECT_FALSE(result().complete());
}

}  // namespace
}  // namespace clusterctl::run
