#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "fakes/temp_dir.h"

namespace clusterctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kPath = {{"PATH", "/usr/bin:/bin"}};

ProcessSpec shell(const std::string& script) {
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.env = kPath;
  return spec;
}

Output run(ProcessSpec spec, milliseconds timeout = seconds(30), size_t limit = 1 << 20) {
  auto output = run_process(std::move(spec), timeout, limit);
  EXPECT_TRUE(output) << output.error().line();
  return output ? *output : Output{};
}

// A process that has ended may stay a zombie for a moment until its new parent has collected it.
bool is_running(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return false;
  const std::string state = stat->substr(stat->rfind(')') + 2, 1);
  return state != "Z" && state != "X";
}
void expect_ends(pid_t pid) {
  for (int i = 0; i < 500 && is_running(pid); ++i) ::usleep(10000);
  EXPECT_FALSE(is_running(pid)) << "process " << pid << " is still there";
}

TEST(RunProcess, GivesOutputAndStatus) {
  Output output = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(output.text, "out\nerr\n");
  EXPECT_EQ(output.status.code, 3);
  EXPECT_FALSE(output.status.ok());
  output = run(shell("kill -TERM $$"));
  EXPECT_EQ(output.status.signal, SIGTERM);
  EXPECT_FALSE(output.status.ok());
  EXPECT_TRUE(run(shell("true")).status.ok());
}

TEST(RunProcess, ArgumentsReachTheProgramAsTheyAre) {
  ProcessSpec spec;
  spec.argv = {"printf", "%s|", "a b", "", "$(id)", "`id`", ";id", "*", "'\"", "-oProxyCommand=id",
               "\n"};
  spec.env = kPath;
  EXPECT_EQ(run(spec).text, "a b||$(id)|`id`|;id|*|'\"|-oProxyCommand=id|\n|");
}

TEST(RunProcess, TheEnvironmentIsExactlyTheGivenOne) {
  ::setenv("CLUSTERCTL_TEST_LEAK", "1", 1);
  ProcessSpec spec;
  spec.argv = {"/usr/bin/env"};
  spec.env = {{"A", "1"}, {"B", "x=y\nz"}, {"EMPTY", ""}};
  EXPECT_EQ(run(spec).text, "A=1\nB=x=y\nz\nEMPTY=\n");
  spec.env = {};
  EXPECT_EQ(run(spec).text, "");
  ::unsetenv("CLUSTERCTL_TEST_LEAK");
}

TEST(RunProcess, StandardInputIsEmpty) {
  EXPECT_EQ(run(shell("cat; readlink /proc/self/fd/0")).text, "/dev/null\n");
}

TEST(RunProcess, ProgramsAreFoundInThePathOfTheChild) {
  TempDir dir;
  dir.write("tool", "#!/bin/sh\necho mine\n");
  fs::permissions(dir.path() / "tool", fs::perms::owner_all);
  fs::create_directories(dir.path() / "first" / "tool");  // a folder of that name is no program
  ProcessSpec spec;
  spec.argv = {"tool"};
  spec.env = {{"PATH", fmt::format("{}:/nonexistent:{}", (dir.path() / "first").string(),
                                   dir.path().string())}};
  EXPECT_EQ(run(spec).text, "mine\n");
}

TEST(RunProcess, WhatCannotStartIsAnError) {
  ProcessSpec spec;
  EXPECT_EQ(run_process(spec, seconds(5)).error().reason, "no_such_program");
  spec.argv = {"clusterctl-no-such-program"};
  const auto missing = run_process(spec, seconds(5));
  EXPECT_THAT(missing.error().message, HasSubstr("clusterctl-no-such-program"));
  spec.argv = {"/clusterctl/none"};
  EXPECT_EQ(run_process(spec, seconds(5)).error().code, Code::kNotFound);
  spec.argv = {"/proc/version"};
  const auto not_executable = run_process(spec, seconds(5));
  EXPECT_EQ(not_executable.error().code, Code::kForbidden) << not_executable.error().line();
  spec = shell("true");
  spec.cwd = "/clusterctl/none";
  EXPECT_FALSE(run_process(spec, seconds(5)));
}

TEST(RunProcess, RunsInTheGivenFolder) {
  ProcessSpec spec = shell("pwd");
  spec.cwd = "/usr";
  EXPECT_EQ(run(spec).text, "/usr\n");
}

TEST(RunProcess, OutputIsCutButDrained) {
  const Output output =
      run(shell("yes | head -c 1000000; echo done >&2; exit 7"), seconds(30), 1000);
  EXPECT_EQ(output.text.size(), 1000u);
  EXPECT_EQ(output.status.code, 7) << "the child was never blocked by a full pipe";
}

TEST(RunProcess, TheTimeoutEndsTheWholeGroup) {
  TempDir dir;
  const fs::path pids = dir.path() / "pids";
  const auto start = std::chrono::steady_clock::now();
  const Output output = run(
      shell(fmt::format(
          "trap '' TERM; sleep 1000 & echo $! > {0}; (sleep 1000 & echo $! >> {0}; wait) & wait",
          pids.string())),
      milliseconds(700));
  EXPECT_TRUE(output.timed_out);
  EXPECT_EQ(output.status.signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  const auto lines = split(dir.read("pids"), '\n', true);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& pid : lines) expect_ends(std::stoi(pid));
}

TEST(RunProcess, TheTimeoutAlsoEndsWhatFloods) {
  const Output output = run(shell("exec yes"), milliseconds(300), 100);
  EXPECT_TRUE(output.timed_out);
  EXPECT_EQ(output.text.size(), 100u);
}

TEST(RunProcess, TheTimeoutAlsoEndsWhatClosedItsOutput) {
  const Output output = run(shell("exec >&- 2>&-; exec sleep 1000"), milliseconds(300));
  EXPECT_TRUE(output.timed_out);
  EXPECT_EQ(output.status.signal, SIGKILL);
}

TEST(RunProcess, AProcessThatClosedItsOutputIsWaitedFor) {
  const Output output = run(shell("exec >&- 2>&-; sleep 0.2; exit 4"));
  EXPECT_FALSE(output.timed_out);
  EXPECT_EQ(output.status.code, 4);
}

TEST(RunProcess, ATimeoutOfNothingEndsAtOnce) {
  EXPECT_TRUE(run(shell("sleep 1000"), milliseconds(0)).timed_out);
}

// Numbers of the descriptors that a child has; looked at one by one, since listing the folder would
// open another.
std::vector<std::string> descriptors_of_child(ProcessSpec spec) {
  spec.argv = {"/bin/sh", "-c",
               "i=0; while [ $i -le 600 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done"};
  spec.env = kPath;
  return split(run(spec).text, '\n', true);
}

TEST(Spawn, ClosesEveryDescriptorThatWasNotPassed) {
  std::vector<Fd> open;  // without close-on-exec, as a library might leave them
  for (int i = 0; i < 20; ++i)
    open.emplace_back(::open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  const Fd high(::fcntl(open[0].get(), F_DUPFD, 500));
  EXPECT_THAT(descriptors_of_child({}), ElementsAre("0", "1", "2"));
}

TEST(Spawn, PassesKeptDescriptorsUnderTheirNumbers) {
  TempDir dir;
  const fs::path a = dir.write("a", "AAA"), b = dir.write("b", "BBB");
  const Fd noise(::open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  Fd first(::open(a.c_str(), O_RDONLY | O_CLOEXEC)),
      second(::open(b.c_str(), O_RDONLY | O_CLOEXEC));
  ProcessSpec spec;
  spec.keep = {{first.get(), 3}, {second.get(), 9}};
  EXPECT_THAT(descriptors_of_child(spec), ElementsAre("0", "1", "2", "3", "9"))
      << "those between are closed as well";

  ProcessSpec reader = shell("cat <&3; cat <&9");
  reader.keep = spec.keep;
  EXPECT_EQ(run(reader).text, "AAABBB");
}

TEST(Spawn, TargetsMayBeSourcesOfOthers) {
  TempDir dir;
  const Fd a(::open(dir.write("a", "AAA").c_str(), O_RDONLY | O_CLOEXEC));
  const Fd b(::open(dir.write("b", "BBB").c_str(), O_RDONLY | O_CLOEXEC));
  ProcessSpec spec;
  spec.argv = {"cat", fmt::format("/dev/fd/{}", a.get()), fmt::format("/dev/fd/{}", b.get())};
  spec.env = kPath;
  spec.keep = {{a.get(), b.get()}, {b.get(), a.get()}};
  EXPECT_EQ(run(spec).text, "BBBAAA");
}

TEST(Spawn, ABadDescriptorIsAnError) {
  ProcessSpec spec = shell("true");
  spec.keep = {{987654, 3}};
  const auto pid = spawn(spec);
  ASSERT_FALSE(pid);
  EXPECT_THAT(pid.error().message, HasSubstr("descriptor 987654"));
}

TEST(Spawn, SignalsAreAsAFreshProgramExpects) {
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  pthread_sigmask(SIG_BLOCK, &blocked, &old);
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const std::string text = run(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")).text;
  ::signal(SIGPIPE, before);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  const auto lines = split(text, '\n', true);
  ASSERT_EQ(lines.size(), 2u);
  const uint64_t library_own = 3ull
                               << 31;  // 32 and 33 belong to the C library, no program can set them
  for (const std::string& line : lines)
    EXPECT_EQ(std::stoull(line.substr(8), nullptr, 16) & ~library_own, 0u) << line;
}

TEST(Spawn, ASessionOfItsOwnOnlyWhenAsked) {
  for (const bool wanted : {false, true}) {
    TempDir dir;
    ProcessSpec spec = shell("cut -d' ' -f1,6 /proc/$$/stat");
    const fs::path file = dir.write("out", "");
    const Fd out(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    spec.output = out.get();
    spec.new_session = wanted;
    const auto pid = spawn(spec);
    ASSERT_TRUE(pid);
    ASSERT_TRUE(wait_process(*pid));
    EXPECT_EQ(trim(dir.read("out")), fmt::format("{} {}", *pid, wanted ? *pid : ::getsid(0)));
  }
}

TEST(WaitProcess, SomebodyElsesProcessIsAnError) {
  EXPECT_EQ(wait_process(1).error().reason, "no_child");
  const auto pid = spawn(shell("exit 5"));
  EXPECT_EQ(wait_process(*pid)->code, 5);
  EXPECT_FALSE(wait_process(*pid)) << "a second time there is nothing to wait for";
}

TEST(ProcessIdentity, TheStartTimeTellsProcessesApart) {
  const auto own = process_start_time(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(process_start_time(::getpid()), own);
  EXPECT_FALSE(process_start_time(0x7ffffff0));
  EXPECT_EQ(boot_id().size(), 36u);
  EXPECT_EQ(boot_id(), boot_id());
}

TEST(ProcessIdentity, ACommandNameWithBracketsAndBlanksDoesNotConfuse) {
  TempDir dir;
  const fs::path program = dir.path() / "a) 1 (b";
  fs::copy_file("/bin/sleep", program);
  ProcessSpec spec;
  spec.argv = {program.string(), "1000"};
  const auto pid = spawn(spec);
  ASSERT_TRUE(pid);
  const auto start = process_start_time(*pid);
  EXPECT_TRUE(start);
  EXPECT_GE(*start, *process_start_time(::getpid()));
  ::kill(*pid, SIGKILL);
  ASSERT_TRUE(wait_process(*pid));
}

}  // namespace
}  // namespace clusterctl
