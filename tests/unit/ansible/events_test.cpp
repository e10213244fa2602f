#include "ansible/events.h"

#include <gtest/gtest.h>

#include <random>

#include "base/time.h"

namespace clusterctl::ansible {
namespace {

std::string line(Json fields) {
  fields.update({{"v", 1}, {"n", 1}, {"t", "2026-11-30T10:00:00.000Z"}});
  return dump_json(fields);
}

std::string result(const std::string& host, const std::string& status, Json more = Json::object()) {
  Json out = {{"event", "result"}, {"host", host},   {"status", status},
              {"service", "etcd"}, {"door", "main"}, {"task", "start the member"},
              {"module", true}};
  out.update(more);
  return line(out);
}

std::string stats(Json hosts) {
  return line({{"event", "stats"}, {"hosts", std::move(hosts)}});
}

RunResult feed(const std::vector<std::string>& lines) {
  RunResult out;
  for (const std::string& text : lines) out.feed_line(text);
  return out;
}

TEST(DecodeEvent, ReadsAResult) {
  const auto event = decode_event(
      result("n1", "failed",
             {{"msg", "no\nspace\tleft"}, {"rc", 5}, {"stderr", "x"}, {"ms", 12}, {"item", "a"}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, "result");
  EXPECT_EQ(event->message, "no space left");
  EXPECT_EQ(event->rc, 5);
  EXPECT_EQ(event->duration_ms, 12);
  EXPECT_EQ(event->item, "a");
  EXPECT_TRUE(event->module);
}

TEST(DecodeEvent, RefusesWhatIsNoEvent) {
  for (const std::string& text : {std::string(),
                                  std::string("{"),
                                  std::string("null"),
                                  std::string("[1]"),
                                  std::string("\xff\xfe"),
                                  std::string(100000, '['),
                                  std::string(100000, '{'),
                                  std::string(5 << 20, 'x'),
                                  line({{"event", 7}}),
                                  line({{"event", ""}}),
                                  line({{"event", "result"}}),
                                  result("n1", "great"),
                                  result("n1", "ok", {{"changed", "yes"}}),
                                  result("n1", "ok", {{"msg", {1}}}),
                                  result("n1", "ok", {{"ms", "1"}}),
                                  line({{"event", "stats"}, {"hosts", {1}}}),
                                  line({{"event", "play"}, {"hosts", "n1"}}),
                                  line({{"event", "fact"}, {"host", "n1"}, {"name", "x"}}),
                                  std::string(R"({"v":2,"event":"task"})"),
                                  std::string(R"({"event":"task"})"),
                                  std::string(R"({"v":1,"v":1,"event":"task"})")}) {
    EXPECT_FALSE(decode_event(text)) << text.substr(0, 80);
  }
}

TEST(DecodeEvent, RandomDamageNeverCrashes) {
  std::mt19937 random(7);
  const std::vector<std::string> seeds = {result("n1", "ok"), stats({{"n1", {{"ok", 1}}}}),
                                          line({{"event", "fact"},
                                                {"host", "n1"},
                                                {"name", "clusterctl_service_etcd"},
                                                {"value", {{"v", 1}, {"healthy", true}}}})};
  RunResult result;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    text.resize(random() % (text.size() + 1));
    result.feed_line(text);
  }
  EXPECT_GT(result.bad_lines(), 1000);
}

TEST(RunResult, IncompleteWithoutStats) {
  const auto r = feed({result("n1", "ok"), "garbage"});
  EXPECT_FALSE(r.complete());
  EXPECT_EQ(r.bad_lines(), 1);
  EXPECT_EQ(r.hosts().at("n1").ok, 1);
  EXPECT_FALSE(r.cause("n1"));
  EXPECT_FALSE(r.in_stats("n1"));
}

TEST(RunResult, RootCauseIsTheFirstFailureThatWasNotIgnored) {
  const auto r = feed({result("n1", "failed", {{"ignored", true}, {"msg", "A"}}),
                       result("n1", "failed", {{"msg", "B"}}),
                       result("n1", "failed", {{"msg", "C"}, {"task", "rescue"}}),
                       stats({{"n1", {{"failures", 1}}}, {"n2", {{"ok", 3}}}})});
  ASSERT_TRUE(r.cause("n1"));
  EXPECT_EQ(r.cause("n1")->line(), "n1: etcd: start the member: B");
  EXPECT_FALSE(r.cause("n2"));
  EXPECT_FALSE(r.cause("n9"));
  EXPECT_TRUE(r.in_stats("n2"));
}

TEST(RunResult, ARescuedFailureIsNone) {
  const auto r = feed({result("n1", "failed", {{"msg", "A"}}), result("n1", "ok"),
                       stats({{"n1", {{"ok", 2}, {"rescued", 1}}}})});
  EXPECT_FALSE(r.cause("n1"));
}

TEST(RunResult, AFailureWithoutStatsStillHasItsCause) {
  const auto r = feed({result("n1", "unreachable", {{"msg", "No route to host"}})});
  EXPECT_EQ(r.cause("n1")->line(), "n1: cannot be reached: No route to host");
  EXPECT_TRUE(r.cause("n1")->unreachable);
}

// Ansible counts an unreachable host as ok where the play ignores that.
TEST(RunResult, WhoDidNotAnswerIsKnownAlsoWhenItIsIgnored) {
  const auto r = feed(
      {result("n1", "unreachable", {{"ignored", true}, {"msg", "No route to host"}}),
       result("n2", "unreachable", {{"ignored", true}}), result("n2", "ok", {{"module", true}}),
       result("n3", "ok", {{"module", false}}),
       stats({{"n1", {{"ok", 1}, {"ignored", 1}}}, {"n2", {{"ok", 2}}}, {"n3", {{"ok", 1}}}})});
  EXPECT_FALSE(r.cause("n1"));
  EXPECT_EQ(r.answered("n1"), false);
  EXPECT_EQ(r.answered("n2"), true) << "it came back";
  EXPECT_EQ(r.answered("n3"), std::nullopt) << "only the controller did something";
}

TEST(RunResult, StatsWithoutTheEventOfTheFailure) {
  const auto r = feed({stats({{"n1", {{"failures", 1}}}})});
  EXPECT_NE(r.cause("n1")->message.find("log"), std::string::npos);
}

TEST(RunResult, AMessageIsFoundWhereThereIsOne) {
  EXPECT_EQ(feed({result("n1", "failed", {{"stderr", "boom"}, {"rc", 3}})}).cause("n1")->message,
            "boom");
  EXPECT_EQ(feed({result("n1", "failed", {{"rc", 3}})}).cause("n1")->message,
            "ended with return code 3");
  EXPECT_EQ(feed({result("n1", "failed")}).cause("n1")->line(),
            "n1: etcd: start the member: failed without a message");
}

// What a task did elsewhere says nothing about the connection to its own host.
TEST(RunResult, AnUnreachableDelegateIsNotTheHost) {
  const auto r =
      feed({result("n4", "unreachable", {{"msg", "No route to host"}, {"delegate", "m1"}}),
            stats({{"n4", {{"unreachable", 1}}}})});
  EXPECT_EQ(r.answered("n4"), std::nullopt);
  EXPECT_EQ(r.answered("m1"), false);
  ASSERT_TRUE(r.cause("n4"));
  EXPECT_FALSE(r.cause("n4")->unreachable);
  EXPECT_EQ(r.cause("n4")->delegate, "m1");
}

TEST(RunResult, KnowsWhatMayHaveBeenChanged) {
  const Json verify = {{"door", "verify"}};
  EXPECT_FALSE(feed({result("n1", "ok", verify)}).touched("n1"));
  EXPECT_FALSE(feed({result("n1", "failed", {{"service", ""}, {"door", ""}, {"module", false}})})
                   .touched("n1"));
  EXPECT_FALSE(
      feed({result("n1", "unreachable", {{"service", ""}, {"door", ""}, {"module", false}})})
          .touched("n1"));
  EXPECT_TRUE(feed({result("n1", "ok")}).touched("n1"));
  EXPECT_TRUE(feed({result("n1", "unreachable", {{"module", false}})}).touched("n1"));
  EXPECT_TRUE(feed({result("n1", "ok", {{"door", "verify"}, {"changed", true}})}).touched("n1"));
  const std::vector<std::string> broken_off = {
      line({{"event", "play"}, {"play", "p"}, {"hosts", {"n1", "n2"}}}),
      line({{"event", "task"}, {"task", "t"}, {"service", "etcd"}, {"door", "main"}}),
      result("n1", "ok")};
  EXPECT_TRUE(feed(broken_off).touched("n2"));
  EXPECT_EQ(feed(broken_off).current_task(), "etcd: t");
  auto complete = broken_off;
  complete.push_back(stats({{"n1", {{"ok", 1}}}}));
  EXPECT_FALSE(feed(complete).touched("n2"));
}

TEST(RunResult, CountsModuleRunsOfLoopsOncePerItem) {
  const auto r =
      feed({line({{"event", "task"}, {"task", "loop"}}),
            result("n1", "ok", {{"item", "a"}, {"changed", true}}),
            result("n1", "ok", {{"item", "b"}, {"changed", true}}),
            result("n1", "ok", {{"changed", true}}), line({{"event", "task"}, {"task", "plain"}}),
            result("n1", "ok"), result("n1", "ok", {{"module", false}}),
            stats({{"n1", {{"ok", 3}, {"changed", 1}}}})});
  EXPECT_EQ(r.hosts().at("n1").module_runs, 3);
  EXPECT_EQ(r.hosts().at("n1").changed, 1);
  EXPECT_EQ(r.changed_services("n1"), std::vector<std::string>{"etcd"});
}

TEST(RunResult, KeepsTheLastFactAndTheCancel) {
  const auto fact = [](int value) {
    return line(
        {{"event", "fact"}, {"host", "n1"}, {"name", "clusterctl_problems"}, {"value", value}});
  };
  const auto r = feed({fact(1), fact(2), line({{"event", "cancelled"}})});
  EXPECT_EQ(*r.fact("n1", "clusterctl_problems"), 2);
  EXPECT_EQ(r.fact("n1", "other"), nullptr);
  EXPECT_EQ(r.fact("n2", "clusterctl_problems"), nullptr);
  EXPECT_TRUE(r.cancelled());
}

TEST(RunResult, AHostileWriterCannotEatTheMemory) {
  RunResult r;
  for (int i = 0; i < 30000; ++i) r.feed_line(result("h" + std::to_string(i), "ok"));
  EXPECT_LE(r.hosts().size(), 20000u);
}

TEST(Facts, ReadsAVerifyFact) {
  const Json fact = {{"v", 1},
                     {"version", "3.4.23"},
                     {"healthy", true},
                     {"message", "two\nlines"},
                     {"role", "leader"},
                     {"member_id", "8e9e"},
                     {"members",
                      {{{"id", "8e9e"},
                        {"name", "n1"},
                        {"addr", "10.0.0.1"},
                        {"role", "member"},
                        {"reachable", true},
                        {"leader", true}}}}};
  const auto status = decode_service_fact(fact, Time{});
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->healthy);
  EXPECT_EQ(status->message, "two lines");
  ASSERT_EQ(status->members.size(), 1u);
  EXPECT_TRUE(status->members[0].leader);
}

TEST(Facts, AWrongShapeIsNeverHealth) {
  const Json good = {{"v", 1}, {"version", "1"}, {"healthy", true}};
  EXPECT_TRUE(decode_service_fact(good, Time{}));
  for (const Json& patch :
       {Json{{"v", 2}}, Json{{"v", nullptr}}, Json{{"healthy", "yes"}}, Json{{"healthy", nullptr}},
        Json{{"healthy", 1}}, Json{{"version", 1.1}}, Json{{"members", "n1"}},
        Json{{"members", {1}}}, Json{{"members", {{{"reachable", "yes"}}}}},
        Json{{"message", Json::array()}}}) {
    Json bad = good;
    bad.update(patch);
    EXPECT_FALSE(decode_service_fact(bad, Time{})) << patch;
  }
  EXPECT_FALSE(decode_service_fact("text", Time{}));
  EXPECT_FALSE(decode_service_fact(nullptr, Time{}));
  Json many = good;
  many["members"] = Json(std::vector<Json>(1001, Json::object()));
  EXPECT_FALSE(decode_service_fact(many, Time{}));
}

TEST(Facts, ReadsHardware) {
  const auto hardware = decode_hardware_fact({{"v", 1},
                                              {"vendor", "Cisco"},
                                              {"model", "UCSB-B200"},
                                              {"series", "b-series"},
                                              {"cpus", 40},
                                              {"memory_mb", -3}});
  ASSERT_TRUE(hardware);
  EXPECT_EQ(hardware->series, "b-series");
  EXPECT_EQ(hardware->cpus, 40);
  EXPECT_EQ(hardware->memory_mb, 0);
  EXPECT_EQ(hardware->serial, "");
  EXPECT_FALSE(decode_hardware_fact({{"v", 1}, {"cpus", "40"}}));
  EXPECT_FALSE(decode_hardware_fact({{"cpus", 40}}));
}

}  // namespace
}  // namespace clusterctl::ansible
