// What the shim writes: floods, long lines, bytes of every kind, full disks, secrets.
#include <sys/mount.h>

#include <iostream>

#include "run/output_log.h"
#include "run/redactor.h"
#include "run/rig.h"

namespace clusterctl::run {
namespace {

size_t peak_kb(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status").value_or("");
  const size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : std::stoul(status.substr(at + 6));
}

TEST_F(Rig, FloodIsKeptWholeWithLittleMemory) {
  orders({{"site", Json::array({"flood:200000", "longline:8388608", "gate:go"})}});
  const auto begun = std::chrono::steady_clock::now();
  begin();
  ASSERT_TRUE(at_gate("go"));
  const size_t memory = peak_kb(started().at("pid").get<pid_t>());
  open_gate("go");
  ASSERT_EQ(follow().phase, Phase::kFinished);
  std::cout << "200,000 lines and one of 8 MiB: "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()
            << " s, " << memory << " kB\n";
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(memory, 64u << 10);
#endif
  const std::string log = output();
  size_t at = 0;
  for (int i = 1; i <= 200000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    ASSERT_EQ(log.compare(at, line.size(), line), 0) << i;
    at += line.size();
  }
  EXPECT_EQ(log.find_first_not_of('x', at), at + 8388608);
}

TEST_F(Rig, BinaryOutputWithoutFinalNewlineArrives) {
  orders({{"site", Json::array({"binary", "broken:0"})}});
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i);
  const std::string log = output();
  EXPECT_EQ(log.find(bytes), 0u);
  EXPECT_EQ(log.substr(4096), "ERROR! the double was told to break\n");
}

TEST_F(Rig, ManyEventsArriveOnceAndInOrder) {
  orders({{"site", "events:50000"}});
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  ASSERT_GT(lines.size(), 50000u);
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_NE(lines[i].find("\"n\": " + std::to_string(i + 1) + ","), std::string::npos)
        << lines[i];
  }
}

TEST_F(Rig, GarbageBetweenEventsIsPassedOn) {
  orders({{"site", "garbage"}});
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "\xff\xfe"), 1);
  EXPECT_NE(lines.back().find("stats"), std::string::npos);
}

TEST_F(Rig, SecretsAreInNoFileThatStays) {
  orders({{"site", "echo"}});
  begin();
  ASSERT_EQ(follow().phase, Phase::kFinished);
  EXPECT_NE(output().find("***"), std::string::npos);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(runs->dir("r1"))) {
    const std::string text = read_file(entry.path()).value_or("");
    EXPECT_EQ(text.find("S3cr3t!value"), std::string::npos) << entry.path();
    EXPECT_EQ(text.find("t0k3n"), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6u);
  for (const std::string& line : lines) EXPECT_TRUE(parse_json(line, "line")) << line;
  EXPECT_NE(read_file(top / "double/calls/0001-site/inventory.json")->find("S3cr3t!value"),
            std::string::npos);
}

TEST_F(Rig, LogLimitCutsWithANote) {
  settings.max_log_bytes = 1000;
  remake();
  orders({{"site", "flood:1000"}});
  begin();
  const RunState state = follow();
  EXPECT_TRUE(state.exit->truncated);
  EXPECT_EQ(state.exit->code, 0);
  EXPECT_LT(output().size(), 1200u);
  EXPECT_NE(output().find("the log was cut here: it reached 1000 bytes"), std::string::npos);
  EXPECT_NE(lines.back().find("stats"), std::string::npos);
}

TEST_F(Rig, FullDiskCutsTheLogAndChangesNothingElse) {
  const fs::path small = top / "small";
  fs::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "NOT TESTED: mounting a small tmpfs needs root";
  settings.runs_dir = small / "runs";
  remake();
  orders({{"site", Json::array({"flood:1000000", "events:500"})}});
  begin();
  const RunState state = follow();
  const std::string log = output();
  EXPECT_EQ(state.phase, Phase::kFinished);
  EXPECT_TRUE(state.exit && state.exit->truncated && state.exit->code == 0);
  EXPECT_GT(log.size(), 200000u);
  EXPECT_NE(log.find("the log was cut here"), std::string::npos);
  EXPECT_GT(lines.size(), 500u);
  EXPECT_NE(lines.back().find("\"stats\""), std::string::npos);
  // A disk that is full from the start is an error of `prepare`, and leaves nothing behind.
  std::ofstream(small / "filler") << std::string(2 << 20, 'x');
  RunSpec big = spec("r2");
  EXPECT_FALSE(runs->prepare(big));
  EXPECT_EQ(runs->look("r2").phase, Phase::kUnknown);
  EXPECT_EQ(::umount(small.c_str()), 0);
}

TEST(Redactor, ReplacesAcrossReadsLongestFirst) {
  const std::vector<std::string> secrets = {"abcd", "abcdef", "xyz\nsecond line here", "tiny",
                                            "no"};
  const std::string text =
      "abcdef abcde abcd tin tiny no {\"m\": \"xyz\\nsecond line here\"} >second line here< abc";
  const std::string want = "*** ***e *** tin *** no {\"m\": \"***\"} >***< abc";
  EXPECT_EQ(Redactor(secrets).replace(text), want);
  for (size_t step = 1; step < text.size(); ++step) {
    Redactor redactor(secrets);
    std::string out;
    for (size_t at = 0; at < text.size(); at += step)
      out += redactor.feed(std::string_view(text).substr(at, step));
    out += redactor.finish();
    EXPECT_EQ(out, want) << step;
  }
}

TEST(Redactor, OverlappingBeginningsHideNothing) {
  Redactor redactor({"aaab", "abQQ"});
  std::string out = redactor.feed("aaa");
  out += redactor.feed("aab");
  out += redactor.feed("Q");
  out += redactor.finish();
  EXPECT_EQ(out, "aa***Q");
}

TEST(Redactor, EventsStayEvents) {
  const Redactor redactor({"node1", "main", "pass\"word"});
  const std::string line =
      R"({"v":1,"event":"result","host":"node1","door":"main","msg":"is pass\"word of node1","n":3})";
  const auto out = parse_json(redactor.replace_in_event(line), "line");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->at("host"), "node1");
  EXPECT_EQ(out->at("door"), "main");
  EXPECT_EQ(out->at("msg"), "is *** of ***");
  EXPECT_EQ(redactor.replace_in_event("{ broken pass\\\"word"), "{ broken ***");
}

TEST(OutputLog, NeverFails) {
  OutputLog log("/nowhere/at/all", 100);
  log.write("text");
  EXPECT_TRUE(log.truncated());
  EXPECT_FALSE(log.give_way());
  OutputLog full("/dev/full", 100);
  full.write("text");
  EXPECT_TRUE(full.truncated());
}

}  // namespace
}  // namespace clusterctl::run
