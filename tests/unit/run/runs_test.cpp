#include "run/runs.h"

#include <sys/stat.h>

#include <atomic>

#include "ansible/events.h"
#include "run/rig.h"

namespace clusterctl::run {
namespace {

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(Rig, RunsToTheEndWithEventsOutputAndExit) {
  begin();
  const RunState state = follow();
  ASSERT_EQ(state.phase, Phase::kFinished);
  EXPECT_EQ(state.exit->code, 0);
  EXPECT_FALSE(state.exit->cancelled);
  EXPECT_FALSE(state.exit->truncated);
  EXPECT_EQ(state.exit->ended.size(), 24u);
  ASSERT_FALSE(lines.empty());
  ansible::RunResult result;
  for (const std::string& line : lines) result.feed_line(line);
  EXPECT_TRUE(result.complete());
  EXPECT_EQ(result.bad_lines(), 0);
  EXPECT_NE(output().find("PLAY RECAP"), std::string::npos);
}

TEST_F(Rig, LooksRightInEveryPhase) {
  EXPECT_EQ(runs->look("r1").phase, Phase::kUnknown);
  EXPECT_EQ(runs->look("../double").phase, Phase::kUnknown);
  orders({{"site", "gate:go"}});
  ASSERT_TRUE(runs->prepare(spec()));
  EXPECT_EQ(runs->look("r1").phase, Phase::kPrepared);
  EXPECT_EQ(follow().phase, Phase::kPrepared);
  ASSERT_TRUE(runs->start("r1"));
  EXPECT_EQ(runs->look("r1").phase, Phase::kRunning);
  EXPECT_EQ(runs->scrub("r1").error().reason, "running");
  open_gate("go");
  EXPECT_EQ(follow().phase, Phase::kFinished);
  EXPECT_EQ(runs->look("r1").phase, Phase::kFinished);
  EXPECT_EQ(runs->start("nothing").error().code, Code::kNotFound);
  EXPECT_EQ(runs->cancel("nothing", false).error().code, Code::kNotFound);
}

TEST_F(Rig, SaysWhenARunLastGaveASignOfLife) {
  const auto now = [] {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now());
  };
  constexpr std::chrono::milliseconds kTick{50};  // of the file system's clock
  EXPECT_FALSE(runs->last_output("nothing"));
  orders({{"site", "gate:go"}});
  ASSERT_TRUE(runs->prepare(spec()));
  EXPECT_FALSE(runs->last_output("r1")) << "it has not begun";
  const Time before = now();
  ASSERT_TRUE(runs->start("r1"));
  ASSERT_TRUE(eventually([&] { return fs::exists(top / "double" / "go.waiting"); }));
  const auto first = runs->last_output("r1");
  ASSERT_TRUE(first);
  EXPECT_GE(*first, before - kTick);
  EXPECT_LE(*first, now() + kTick);
  open_gate("go");
  ASSERT_EQ(follow().phase, Phase::kFinished);
  EXPECT_GT(*runs->last_output("r1"), before);
  EXPECT_GE(*runs->last_output("r1"), *first);
}

TEST_F(Rig, StartsAtMostOnce) {
  begin();
  EXPECT_TRUE(runs->start("r1"));
  ASSERT_EQ(follow().phase, Phase::kFinished);
  EXPECT_TRUE(runs->start("r1"));
  EXPECT_EQ(calls(), 1u);
  EXPECT_EQ(runs->prepare(spec()).error().reason, "exists");
}

TEST_F(Rig, RacingStartsAndLooksMakeOneRun) {
  for (int round = 0; round < 5; ++round) {
    const std::string id = "race" + std::to_string(round);
    ASSERT_TRUE(runs->prepare(spec(id)));
    std::atomic<int> good{0};
    std::atomic<bool> looking{true};
    std::thread looker([&] {
      while (looking) EXPECT_NE(runs->look(id).phase, Phase::kInterrupted);
    });
    std::vector<std::thread> starters;
    for (int i = 0; i < 4; ++i) {
      starters.emplace_back([&] {
        const auto other = make_runs(settings);
        if (other->start(id)) ++good;
      });
    }
    for (auto& thread : starters) thread.join();
    EXPECT_EQ(good, 4);
    const RunState state = follow(id);
    looking = false;
    looker.join();
    EXPECT_EQ(state.phase, Phase::kFinished);
    EXPECT_EQ(calls(), static_cast<size_t>(round + 1));
  }
}

TEST_F(Rig, GivesExactlyTheAgreedEnvironmentAndNothingElse) {
  ::setenv("ODD_VARIABLE_OF_THE_DAEMON", "1", 1);
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  const Json call = this->call();
  const fs::path dir = runs->dir("r1");
  const Json env = call.at("env");
  const std::string control = env.value("ANSIBLE_SSH_CONTROL_PATH_DIR", "");
  EXPECT_LE(control.size(), 20u);
  EXPECT_FALSE(fs::exists(control));
  Json want = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
               {"HOME", env.value("HOME", "")},
               {"LANG", "C.UTF-8"},
               {"TMPDIR", (dir / "tmp").string()},
               {"ANSIBLE_CONFIG", settings.ansible_config.string()},
               {"ANSIBLE_LOCAL_TEMP", (dir / "tmp").string()},
               {"ANSIBLE_SSH_CONTROL_PATH_DIR", control},
               {"ANSIBLE_NOCOLOR", "1"},
               {"PYTHONUNBUFFERED", "1"},
               {"CLUSTERCTL_RUN_DIR", (dir / "child").string()},
               {"CLUSTERCTL_RUN_ID", "r1"},
               {"CLUSTERCTL_DOUBLE_DIR", (top / "double").string()}};
  Json got = env;
  got.erase("LC_CTYPE");  // set by Python itself
  EXPECT_EQ(got, want);
  EXPECT_EQ(call.at("argv"),
            Json({settings.ansible_playbook, "-i", (dir / "inventory.json").string(), "-e",
                  "@" + (dir / "vars.json").string(), (settings.playbooks / "site.yml").string()}));
  EXPECT_EQ(call.at("cwd"), "/");
  EXPECT_EQ(call.at("pgid"), call.at("pid"));
  for (const Json& fd : call.at("open_fds"))
    EXPECT_LE(fd.get<int>(), 3) << "a descriptor leaked";  // 3: the double's own
  EXPECT_EQ(mode_of(top / "double/calls/0001-site/inventory.json"), 0600u);
  EXPECT_EQ(mode_of(top / "double/calls/0001-site/vars.json"), 0600u);
}

TEST_F(Rig, KeepsItsFilesPrivateAndRemovesWhatARunNeedsOnly) {
  orders({{"site", "gate:go"}});
  begin();
  const fs::path dir = runs->dir("r1");
  EXPECT_EQ(mode_of(dir), 0700u);
  for (const char* name : {"run.json", "inventory.json", "vars.json", "known_hosts", "secrets.json",
                           "events.jsonl", "output.log"}) {
    EXPECT_EQ(mode_of(dir / name), 0600u) << name;
  }
  open_gate("go");
  ASSERT_EQ(follow().phase, Phase::kFinished);
  for (const char* name :
       {"inventory.json", "vars.json", "secrets.json", "tmp", "child", ".exit.json"}) {
    EXPECT_FALSE(fs::exists(dir / name)) << name;
  }
  std::ofstream(dir / "known_hosts", std::ios::app)
      << "aaaabbbbcccc ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n";
  EXPECT_EQ(ansible::learnt_host_keys(*runs->read_known_hosts("r1")).size(), 1u);
  ASSERT_TRUE(runs->scrub("r1"));
  ASSERT_TRUE(runs->scrub("r1"));
  EXPECT_FALSE(fs::exists(dir / "known_hosts"));
  EXPECT_TRUE(fs::exists(dir / "events.jsonl"));
  EXPECT_TRUE(fs::exists(dir / "output.log"));
  EXPECT_TRUE(runs->scrub("never-was"));
}

TEST_F(Rig, ReportsAProgramThatIsNotThere) {
  settings.ansible_playbook = "no-such-ansible-playbook";
  remake();
  ASSERT_TRUE(runs->prepare(spec()));
  const auto ok = runs->start("r1");
  ASSERT_FALSE(ok);
  EXPECT_NE(ok.error().message.find("no-such-ansible-playbook"), std::string::npos)
      << ok.error().message;
  EXPECT_EQ(runs->look("r1").exit->code, 127);
  EXPECT_NE(output().find("no-such-ansible-playbook"), std::string::npos);
  settings.self = "/nowhere/clusterctl";
  remake();
  ASSERT_TRUE(runs->prepare(spec("r2")));
  EXPECT_FALSE(runs->start("r2"));
  EXPECT_EQ(runs->look("r2").phase, Phase::kPrepared);
}

TEST_F(Rig, TellsHowTheChildEnded) {
  orders({{"site", "fail:7"}, {"verify", "kill:9"}, {"check", "broken:3"}, {"cleanup", "silent"}});
  begin("a", "site.yml");
  EXPECT_EQ(follow("a").exit->code, 7);
  begin("b", "verify.yml");
  EXPECT_EQ(follow("b").exit->signal, SIGKILL);
  begin("c", "check.yml");
  EXPECT_EQ(follow("c").exit->code, 3);
  begin("d", "cleanup.yml");
  EXPECT_EQ(follow("d").exit->code, 0);
  EXPECT_TRUE(lines.empty());
}

TEST_F(Rig, RefusesNamesThatLeadElsewhere) {
  EXPECT_FALSE(runs->prepare(spec("../evil")));
  EXPECT_FALSE(runs->prepare(spec("")));
  EXPECT_FALSE(runs->prepare(spec("r1", "../site.yml")));
  EXPECT_FALSE(runs->prepare(spec("r1", "-v")));
  EXPECT_EQ(runs->look("r1").phase, Phase::kUnknown);
}

TEST_F(Rig, DamagedFilesAreNoRun) {
  ASSERT_TRUE(runs->prepare(spec()));
  std::ofstream(files_of().run_json()) << "{\"format\": 2}";
  EXPECT_FALSE(runs->start("r1"));
  ASSERT_TRUE(runs->prepare(spec("r2")));
  std::ofstream(files_of("r2").exit()) << "not json";
  EXPECT_EQ(runs->look("r2").phase, Phase::kInterrupted);
  std::ofstream(files_of("r2").exit()) << "{}";
  EXPECT_EQ(runs->look("r2").phase, Phase::kInterrupted);
}

}  // namespace
}  // namespace clusterctl::run
