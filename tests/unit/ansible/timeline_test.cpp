#include "ansible/timeline.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace clusterctl::ansible {
namespace {

// Milliseconds after a fixed beginning.
std::string at(int64_t ms) {
  return format_time(Time(std::chrono::milliseconds(1700000000000 + ms)));
}

class Timeline : public testing::Test {
 protected:
  void play(const std::vector<std::string>& hosts) {
    write({{"event", "play"}, {"play", "Cluster"}, {"hosts", hosts}}, 0);
  }
  void task(int64_t ms, const std::string& service, const std::string& name) {
    write({{"event", "task"}, {"task", name}, {"service", service}, {"door", "main"}}, ms);
    task_ = name;
    service_ = service;
  }
  void result(int64_t ms, const std::string& host, int64_t took, Json more = Json::object()) {
    Json event{{"event", "result"}, {"host", host},     {"task", task_}, {"service", service_},
               {"status", "ok"},    {"changed", false}, {"ms", took}};
    event.update(more);
    write(event, ms);
  }
  void write(Json event, int64_t ms) {
    event["v"] = 1;
    event["n"] = ++n_;
    event["t"] = at(ms);
    t_.feed_line(dump_json(event));
  }

  RunTimeline t_;
  std::string task_, service_;
  int n_ = 0;
};

TEST_F(Timeline, TimesPerServiceOfEachNode) {
  play({"a", "b"});
  task(1000, "docker", "Install");
  result(3000, "a", 2000, {{"changed", true}});
  result(6000, "b", 5000);
  task(6000, "docker", "Start");
  result(7000, "a", 1000);
  task(7000, "etcd", "Join");
  result(7500, "a", 400, {{"status", "failed"}});
  const auto& spans = t_.hosts().at("a");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].service, "docker");
  EXPECT_EQ(spans[0].busy_ms, 3000);
  EXPECT_EQ(spans[0].tasks, 2);
  EXPECT_EQ(spans[0].changed, 1);
  EXPECT_EQ(format_time(*spans[0].started), at(1000));
  EXPECT_EQ(format_time(*spans[0].ended), at(7000));
  EXPECT_EQ(spans[0].state, "ok");
  EXPECT_EQ(spans[1].state, "failed");
  EXPECT_EQ(t_.hosts().at("b")[0].busy_ms, 5000);
}

TEST_F(Timeline, WhatIsBeingDoneAndWhoIsWaitedFor) {
  EXPECT_FALSE(t_.current());
  play({"a", "b", "c"});
  task(1000, "docker", "Install");
  result(2000, "b", 1000);
  ASSERT_TRUE(t_.current());
  EXPECT_EQ(t_.current()->play, "Cluster");
  EXPECT_EQ(t_.current()->task, "Install");
  EXPECT_EQ(t_.current()->waiting_for, (std::set<std::string>{"a", "c"}));
  EXPECT_EQ(format_time(*t_.current()->since), at(1000));
  write({{"event", "stats"}, {"hosts", Json::object()}}, 9000);
  EXPECT_FALSE(t_.current()) << "nothing after the end";
  EXPECT_EQ(format_time(*t_.last()), at(9000));
}

TEST_F(Timeline, ItemsOfALoopAreNotCountedTwice) {
  play({"a"});
  task(0, "base", "Each");
  result(10, "a", 10, {{"item", "x"}, {"changed", true}});
  result(20, "a", 20, {{"item", "y"}, {"changed", true}});
  result(30, "a", 30, {{"changed", true}});
  EXPECT_EQ(t_.hosts().at("a")[0].busy_ms, 30);
  EXPECT_EQ(t_.hosts().at("a")[0].tasks, 1);
  EXPECT_EQ(t_.hosts().at("a")[0].changed, 1);
}

TEST_F(Timeline, AnIgnoredFailureIsNone) {
  play({"a"});
  task(0, "base", "Try");
  result(10, "a", 10, {{"status", "failed"}, {"ignored", true}});
  EXPECT_EQ(t_.hosts().at("a")[0].state, "ok");
}

TEST_F(Timeline, TheFiveSlowestTasks) {
  play({"a"});
  const int64_t took[] = {3, 9, 1, 7, 5, 8, 2};
  int64_t now = 0;
  for (const int64_t ms : took) {
    task(now, "base", "takes " + std::to_string(ms));
    now += ms;
  }
  write({{"event", "stats"}, {"hosts", Json::object()}}, now);
  std::vector<int64_t> seen;
  for (const TaskSpan& s : t_.slowest()) seen.push_back(s.ms);
  EXPECT_EQ(seen, (std::vector<int64_t>{9, 8, 7, 5, 3}));
}

TEST_F(Timeline, HostileLinesAreBounded) {
  play({});
  for (const char* line : {"", "{", "[]", "{\"v\":1,\"event\":\"result\"}", "\xff"})
    t_.feed_line(line);
  task(0, std::string(100000, 's'), std::string(100000, 't'));
  for (int i = 0; i < 200; ++i) {
    service_ = "s" + std::to_string(i);
    result(i, "a", INT64_MAX);
  }
  EXPECT_LE(t_.hosts().at("a").size(), 64u);
  EXPECT_LE(t_.current()->task.size(), 200u);
}

}  // namespace
}  // namespace clusterctl::ansible
