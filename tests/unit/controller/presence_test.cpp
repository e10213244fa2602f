#include <gtest/gtest.h>

#include <algorithm>

#include "controller/damper.h"
#include "controller/fixture.h"
#include "controller/watch.h"

namespace clusterctl::controller {
namespace {

using std::chrono::seconds;

TEST(Damper, AFewChangesAreFreeThenTheNewestCountsOnceInAWhile) {
  Damper damper;
  Time now{seconds(1000)};
  const auto flip = [](int i) {
    return i % 2 ? fleet::Presence::kDiscovered : fleet::Presence::kDisappeared;
  };
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(damper.admit("n", flip(i), now)) << i;
  EXPECT_FALSE(damper.flaps("n"));
  EXPECT_FALSE(damper.admit("n", flip(6), now));
  EXPECT_FALSE(damper.admit("n", flip(7), now));
  EXPECT_TRUE(damper.flaps("n"));
  EXPECT_TRUE(damper.admit("other", flip(0), now)) << "it concerns nobody else";
  EXPECT_TRUE(damper.due(now).empty());
  now += seconds(5);
  const auto due = damper.due(now);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].second, flip(7)) << "the newest";
  EXPECT_TRUE(damper.due(now + seconds(5)).empty()) << "once";
  now += seconds(120);
  damper.due(now);
  EXPECT_TRUE(damper.admit("n", flip(0), now)) << "it has been quiet";
  EXPECT_FALSE(damper.flaps("n"));
}

class PresenceTest : public ControllerTest {
 protected:
  std::vector<Seen> event(const std::string& name, const std::string& machine,
                          const std::string& addr, const std::string& serial) {
    auto seen = c().monitor_event(
        {{"name", name}, {"nodes", {{{"name", machine}, {"addr", addr}, {"serial", serial}}}}});
    EXPECT_TRUE(seen) << seen.error().line();
    return seen ? *seen : std::vector<Seen>{};
  }
  const fleet::Node node(const std::string& name) { return *c().state()->fleet->by_name(name); }
  size_t events(const std::string& type) {
    const auto page = c().events().since(0, 100000);
    return static_cast<size_t>(std::count_if(page.events.begin(), page.events.end(),
                                             [&](const Event& e) { return e.type == type; }));
  }
};

TEST_F(PresenceTest, ReportsAtTheSameTimeAreAllRecorded) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string n = std::to_string(t) + "-" + std::to_string(i);
        const auto seen =
            event("discovered", "m" + n, "10.1." + std::to_string(t) + "." + std::to_string(i + 1),
                  "SN" + n);
        EXPECT_EQ(seen.at(0).finding, fleet::Finding::kNew);
        EXPECT_EQ(seen.at(0).node, "m" + n);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(c().state()->fleet->nodes.size(), 160u);
  EXPECT_EQ(events("node.added"), 160u);
  restart();
  EXPECT_EQ(c().state()->fleet->nodes.size(), 160u);
}

TEST_F(PresenceTest, WhatCameAndWentInOneReportIsToldInThatOrder) {
  event("discovered", "m1", "10.1.0.1", "SN1");
  event("disappeared", "m1", "10.1.0.1", "SN1");
  event("discovered", "m1", "10.1.0.1", "SN1");
  std::vector<std::string> told;
  for (const Event& e : c().events().since(0, 1000).events) {
    if (e.type == "node.presence") told.push_back(e.message);
  }
  EXPECT_EQ(told,
            (std::vector<std::string>{"Discovered → Disappeared", "Disappeared → Discovered"}));
}

TEST_F(PresenceTest, AFlappingNodeCostsLittleAndEndsTrue) {
  event("discovered", "m1", "10.1.0.1", "SN1");
  for (int i = 0; i < 500; ++i)
    event(i % 2 ? "discovered" : "disappeared", "m1", "10.1.0.1", "SN1");
  EXPECT_LE(events("node.presence"), 8u);
  event("disappeared", "m1", "10.1.0.1", "SN1");
  clock_.advance(seconds(6));
  while (node("m1").status.presence != fleet::Presence::kDisappeared)
    std::this_thread::yield();  // the scheduler looks once a second
}

TEST_F(PresenceTest, ManyFindingsOfTheProberAreStoredInOrder) {
  std::vector<monitor::Finding> all;
  for (int i = 0; i < 150; ++i) {
    add("n" + std::to_string(i), "10.2.0." + std::to_string(i + 1), "");
    all.push_back({node("n" + std::to_string(i)).id, fleet::Presence::kDiscovered, std::nullopt});
  }
  Watch watch(c());
  ASSERT_TRUE(watch.record(all));
  std::vector<std::string> told;
  for (const Event& e : c().events().since(0, 1000).events) {
    if (e.type == "node.presence") told.push_back(e.node);
  }
  ASSERT_EQ(told.size(), 150u);
  for (int i = 0; i < 150; ++i) EXPECT_EQ(told[i], "n" + std::to_string(i));
}

TEST_F(PresenceTest, IsolationIsToldAndWarnedOf) {
  add("m1", "10.0.0.1", "service-master");
  Watch watch(c());
  ASSERT_TRUE(watch.isolated(clock_.now(), "cut off"));
  EXPECT_TRUE(c().state()->fleet->isolated_since);
  const auto plan =
      c().create_job({{"kind", "commission"}, {"nodes", {"m1"}}, {"dry_run", true}}, "test", "");
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_NE(dump_json(plan->plan["warnings"]).find("CONTROLLER_ISOLATED"), std::string::npos);
  ASSERT_TRUE(watch.isolated(std::nullopt, "back"));
  EXPECT_FALSE(c().state()->fleet->isolated_since);
  EXPECT_EQ(events("monitor.isolated"), 1u);
  EXPECT_EQ(events("monitor.connected"), 1u);
}

}  // namespace
}  // namespace clusterctl::controller
