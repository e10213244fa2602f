// Deaths: of the daemon, of the shim; and the two ways to ask for the end.
#include <sys/wait.h>

#include "base/process.h"
#include "run/processes.h"
#include "run/rig.h"

namespace clusterctl::run {
namespace {

TEST_F(Rig, SurvivesTheDeathOfItsParentAndIsReadOnceFromTheStart) {
  orders({{"site", Json::array({"events:500", "gate:go"})}});
  ASSERT_TRUE(runs->prepare(spec()));
  // The parent is a process of its own: it starts the run, follows it, and is killed.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::setsid();
    const auto own = make_runs(settings);
    if (!own->start("r1")) ::_exit(1);
    (void)!::write(ends[1], "x", 1);
    own->follow("r1", std::stop_token(), [](std::string_view) {});
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ASSERT_TRUE(at_gate("go"));
  ::kill(-daemon, SIGHUP);
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  const pid_t shim = started().at("pid").get<pid_t>();
  ASSERT_TRUE(alive(shim));
  ::kill(shim, SIGHUP);
  ::kill(shim, SIGTERM);
  EXPECT_EQ(runs->look("r1").phase, Phase::kRunning);
  std::thread opener([&] { open_gate("go"); });
  const RunState state = follow();
  opener.join();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 0);
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(parse_json(lines[i], "line")->at("n").get<size_t>(), i + 1);
  }
  EXPECT_GT(lines.size(), 500u);
  EXPECT_EQ(calls(), 1u);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Rig, FollowStopsOnRequestAndTheRunGoesOn) {
  orders({{"site", "gate:go"}});
  begin();
  std::stop_source stop;
  RunState state;
  std::thread follower(
      [&] { state = runs->follow("r1", stop.get_token(), [](std::string_view) {}); });
  ASSERT_TRUE(at_gate("go"));
  stop.request_stop();
  follower.join();
  EXPECT_EQ(state.phase, Phase::kRunning);
  open_gate("go");
  EXPECT_EQ(follow().phase, Phase::kFinished);
}

TEST_F(Rig, KilledShimIsAnInterruptedRunWithNothingLeft) {
  orders({{"site", "fork-hang"}});
  begin();
  ASSERT_TRUE(
      eventually([&] { return read_file(top / "double/grandchild.pid").value_or("").size() > 0; }));
  const pid_t shim = started().at("pid").get<pid_t>();
  const pid_t grandchild = std::stoi(*read_file(top / "double/grandchild.pid"));
  const pid_t child = call().at("pid").get<pid_t>();
  EXPECT_EQ(processes_of_run(files_of().child(), "").size(), 2u);
  ::kill(shim, SIGKILL);
  const RunState state = follow();
  EXPECT_EQ(state.phase, Phase::kInterrupted);
  EXPECT_FALSE(alive(child));
  EXPECT_FALSE(alive(grandchild));
  EXPECT_TRUE(processes_of_run(files_of().child(), "").empty());
  EXPECT_EQ(runs->look("r1").phase, Phase::kInterrupted);
  ASSERT_TRUE(runs->start("r1"));  // harmless
  EXPECT_EQ(calls(), 1u);
  ASSERT_TRUE(runs->scrub("r1"));
  EXPECT_FALSE(fs::exists(files_of().inventory()));
  EXPECT_FALSE(fs::exists(files_of().secrets()));
  EXPECT_EQ(runs->look("r1").phase, Phase::kInterrupted);
}

TEST_F(Rig, ScrubAloneEndsWhatAKilledShimLeft) {
  orders({{"site", "fork-hang"}});
  begin();
  ASSERT_TRUE(
      eventually([&] { return read_file(top / "double/grandchild.pid").value_or("").size() > 0; }));
  ::kill(started().at("pid").get<pid_t>(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return runs->look("r1").phase == Phase::kInterrupted; }));
  ASSERT_TRUE(runs->scrub("r1"));
  EXPECT_TRUE(processes_of_run(files_of().child(), "").empty());
}

TEST_F(Rig, CancelAtTheNextTask) {
  orders({{"site", "gate:go:docker"}});
  begin();
  ASSERT_TRUE(at_gate("go"));
  ASSERT_TRUE(runs->cancel("r1", false));
  ASSERT_TRUE(runs->cancel("r1", false));
  open_gate("go");
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 250);
  EXPECT_TRUE(state.exit->cancelled);
  EXPECT_EQ(parse_json(lines.back(), "line")->at("event"), "cancelled");
  EXPECT_TRUE(runs->cancel("r1", true));  // too late, and no error
}

TEST_F(Rig, CancelNowEndsAProcessThatHangs) {
  orders({{"site", "hang"}});
  begin();
  ASSERT_TRUE(runs->cancel("r1", false));
  ASSERT_TRUE(runs->cancel("r1", true));
  ASSERT_TRUE(runs->cancel("r1", false));  // does not take the "now" back
  EXPECT_EQ(read_file(files_of().cancel()).value_or(""), "now\n");
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_TRUE(state.exit->cancelled);
}

TEST_F(Rig, CancelNowKillsWhatIgnoresTerm) {
  settings.kill_after = std::chrono::milliseconds(300);
  remake();
  orders({{"site", "fork-hang"}});
  begin();
  ASSERT_TRUE(
      eventually([&] { return read_file(top / "double/grandchild.pid").value_or("").size() > 0; }));
  const pid_t grandchild = std::stoi(*read_file(top / "double/grandchild.pid"));
  ASSERT_TRUE(runs->cancel("r1", true));
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->signal, SIGTERM);
  EXPECT_TRUE(state.exit->cancelled);
  EXPECT_FALSE(alive(grandchild));
}

TEST_F(Rig, CancelledBeforeItStartedIsNotStarted) {
  ASSERT_TRUE(runs->prepare(spec()));
  ASSERT_TRUE(runs->cancel("r1", false));
  ASSERT_TRUE(runs->start("r1"));
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_TRUE(state.exit->cancelled);
  EXPECT_EQ(calls(), 0u);
}

TEST_F(Rig, AnOrphanThatHoldsTheOutputOpenIsEnded) {
  orders({{"site", "orphan"}});
  begin();
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 0);
  EXPECT_FALSE(state.exit->cancelled);
  EXPECT_FALSE(alive(std::stoi(*read_file(top / "double/grandchild.pid"))));
}

// Stands in for a ControlPersist master: own session, title like ssh's, a socket in the run's
// folder.
TEST_F(Rig, SshMastersAreEndedWithTheRun) {
  const fs::path program = top / "ansible-playbook";
  std::ofstream(program) << "#!/bin/sh\n"
                            "setsid sh -c 'echo $$ > "
                         << (top / "master.pid").string()
                         << "; exec sleep 1000' >/dev/null 2>&1 &\n"
                            "while [ ! -s "
                         << (top / "master.pid").string()
                         << " ]; do :; done\n"
                            "touch \"$ANSIBLE_SSH_CONTROL_PATH_DIR/0123456789\"\n";
  fs::permissions(program, fs::perms::owner_all);
  settings.ansible_playbook = program.string();
  remake();
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  EXPECT_FALSE(alive(std::stoi(*read_file(top / "master.pid"))));
  EXPECT_FALSE(fs::exists(read_run_record(files_of())->control_dir));
}

// ssh overwrites its environment with its title, so after the death of the shim only the title
// tells whose master it is.
TEST_F(Rig, SshMastersAreEndedWhenTheShimWasKilled) {
  const fs::path program = top / "ansible-playbook";
  std::ofstream(program) << "#!/bin/bash\n"
                            "cd /; env -i setsid bash -c 'exec -a \"ssh: "
                            "'$ANSIBLE_SSH_CONTROL_PATH_DIR'/0123456789 [mux]\" sleep 1000' &\n"
                            "echo $! > "
                         << (top / "master.pid").string() << "\nexec sleep 1000\n";
  fs::permissions(program, fs::perms::owner_all);
  settings.ansible_playbook = program.string();
  remake();
  begin();
  const auto master = [&] {
    return std::atoi(read_file(top / "master.pid").value_or("0").c_str());
  };
  ASSERT_TRUE(eventually([&] {
    return master() > 0 && read_file("/proc/" + std::to_string(master()) + "/cmdline")
                                   .value_or("")
                                   .rfind("ssh: ", 0) == 0;
  }));
  ::kill(started().at("pid").get<pid_t>(), SIGKILL);
  EXPECT_EQ(follow().phase, Phase::kInterrupted);
  EXPECT_FALSE(alive(master()));
  ASSERT_TRUE(runs->scrub("r1"));
  EXPECT_FALSE(fs::exists(read_run_record(files_of())->control_dir));
}

}  // namespace
}  // namespace clusterctl::run
