#include "monitor/prober.h"

#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_steady.h"
#include "fakes/fleet_builder.h"

namespace clusterctl::monitor {
namespace {

using fleet::Presence;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Machines that answer or do not, at once; or stay silent for ever.
class FakeDialer final : public Dialer {
 public:
  void dial(uint64_t probe, const std::string& addr, int) override {
    ++dialled[addr];
    open.insert(probe);
    most_open = std::max(most_open, open.size());
    if (silent.count(addr)) return;
    answers.push_back({probe, !down.count(addr), "connection refused"});
  }
  void hang_up(uint64_t probe) override {
    open.erase(probe);
    ++hung_up;
  }
  std::vector<Answer> wait(milliseconds) override {
    std::vector<Answer> out;
    out.swap(answers);
    for (const Answer& a : out) open.erase(a.probe);
    return out;
  }
  void wake() override {}

  std::set<std::string> down, silent;
  std::map<std::string, int> dialled;
  std::set<uint64_t> open;
  size_t most_open = 0;
  int hung_up = 0;
  std::vector<Answer> answers;
};

// Stores what the prober finds, as the controller does.
class FakeHost final : public Host {
 public:
  std::shared_ptr<const fleet::Snapshot> fleet() const override { return now; }
  Status record(const std::vector<Finding>& findings) override {
    ++commits;
    if (refuses) return fail(Code::kUnavailable, "full", "the disk is full");
    auto next = std::make_shared<fleet::Snapshot>(*now);
    for (const Finding& f : findings) {
      next->nodes.at(f.node).status.presence = f.presence;
      events.emplace_back(f.node, f.presence);
    }
    now = next;
    return {};
  }
  Status isolated(std::optional<Time> since, const std::string&) override {
    isolations.push_back(since.has_value());
    return {};
  }
  void change(const std::function<void(fleet::Snapshot&)>& edit) {
    auto next = std::make_shared<fleet::Snapshot>(*now);
    edit(*next);
    now = next;
  }

  std::shared_ptr<const fleet::Snapshot> now = std::make_shared<fleet::Snapshot>();
  std::vector<std::pair<std::string, Presence>> events;
  std::vector<bool> isolations;
  int commits = 0;
  bool refuses = false;
};

class ProberTest : public testing::Test {
 protected:
  ProberTest() {
    options_.now = [this] { return steady_.now(); };
    options_.chance = [this] { return 0.01 * static_cast<double>(++chance_ % 100); };
  }
  void fleet(int nodes, Presence presence = Presence::kUnknown) {
    host_.change([&](fleet::Snapshot& s) {
      for (int i = 1; i <= nodes; ++i) {
        fleet::Node n = fleet::make_node("n" + std::to_string(i), i);
        n.status.presence = presence;
        s.nodes[n.id] = n;
      }
    });
  }
  void run(milliseconds time) {
    if (!prober_) prober_ = std::make_unique<Prober>(options_, host_, dialer_, clock_);
    for (milliseconds t{0}; t < time; t += milliseconds(100)) {
      prober_->turn(dialer_.wait(milliseconds(0)));
      prober_->turn(dialer_.wait(milliseconds(0)));
      steady_.advance(milliseconds(100));
      clock_.advance(milliseconds(100));
    }
  }
  Presence presence(int n) {
    return host_.now->nodes.at(fleet::make_node("n" + std::to_string(n), n).id).status.presence;
  }
  int dialled(int n) { return dialer_.dialled[addr(n)]; }
  std::string addr(int n) { return "10.0.0." + std::to_string(n); }

  Options options_;
  FakeSteady steady_;
  FakeClock clock_;
  FakeHost host_;
  FakeDialer dialer_;
  std::unique_ptr<Prober> prober_;
  int chance_ = 0;
};

TEST_F(ProberTest, OneAnswerIsEnoughAndThreeMissesAreNeeded) {
  fleet(4);
  run(seconds(20));
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(presence(i), Presence::kDiscovered);
  EXPECT_EQ(host_.events.size(), 4u);
  const int before = dialled(1);
  dialer_.down = {addr(1)};
  while (dialled(1) < before + 2) run(milliseconds(100));
  run(milliseconds(300));
  EXPECT_EQ(presence(1), Presence::kDiscovered) << "two misses are none";
  while (dialled(1) < before + 3) run(milliseconds(100));
  run(milliseconds(300));
  EXPECT_EQ(presence(1), Presence::kDisappeared);
  dialer_.down.clear();
  run(seconds(17));
  EXPECT_EQ(presence(1), Presence::kDiscovered);
  EXPECT_EQ(host_.events.size(), 6u) << "nothing is recorded while nothing changes";
}

TEST_F(ProberTest, AMissInBetweenStartsTheCountAnew) {
  options_.interval = seconds(10);
  fleet(3, Presence::kDiscovered);
  run(seconds(12));
  for (int round = 0; round < 6; ++round) {
    const int before = dialled(1);
    dialer_.down = {addr(1)};
    while (dialled(1) < before + 2) run(milliseconds(100));
    run(milliseconds(200));
    dialer_.down.clear();
    while (dialled(1) < before + 3) run(milliseconds(100));
    run(milliseconds(200));
  }
  EXPECT_TRUE(host_.events.empty());
}

TEST_F(ProberTest, EveryNodeIsProbedOnceInAnIntervalWithJitter) {
  fleet(200);
  run(seconds(150));
  for (int i = 1; i <= 200; ++i) {
    EXPECT_GE(dialled(i), 9) << i;
    EXPECT_LE(dialled(i), 12) << i;
  }
}

TEST_F(ProberTest, ProbesUnderWayAreBoundedAndSilenceEndsThem) {
  options_.parallel = 10;
  options_.timeout = seconds(2);
  fleet(100);
  for (int i = 1; i <= 100; ++i) dialer_.silent.insert(addr(i));
  run(seconds(120));
  EXPECT_EQ(dialer_.most_open, 10u);
  EXPECT_GT(dialer_.hung_up, 100);
  EXPECT_EQ(presence(1), Presence::kDisappeared) << "never seen: nobody is cut off";
  EXPECT_TRUE(host_.isolations.empty());
}

TEST_F(ProberTest, OnlyAcceptedNodesWithoutAJumpHostAreProbed) {
  fleet(3, Presence::kUnknown);
  host_.change([](fleet::Snapshot& s) {
    auto it = s.nodes.begin();
    (it++)->second.spec.acceptance = fleet::Acceptance::kPending;
    (it++)->second.spec.ssh.jump = "ops@gate";
  });
  run(seconds(60));
  EXPECT_EQ(dialer_.dialled.size(), 1u);
  EXPECT_EQ(host_.events.size(), 1u);
}

TEST_F(ProberTest, ANewAddressIsProbedAndAnOldOneIsNot) {
  fleet(1);
  run(seconds(5));
  host_.change([](fleet::Snapshot& s) { s.nodes.begin()->second.spec.addr = "10.9.9.9"; });
  const int before = dialled(1);
  run(seconds(40));
  EXPECT_LE(dialled(1), before + 1);
  EXPECT_GE(dialer_.dialled["10.9.9.9"], 2);
  host_.change([](fleet::Snapshot& s) { s.nodes.clear(); });
  run(seconds(3));
  const int last = dialer_.dialled["10.9.9.9"];
  run(seconds(40));
  EXPECT_EQ(dialer_.dialled["10.9.9.9"], last);
}

TEST_F(ProberTest, WhenMostFallSilentAtOnceTheControllerIsCutOff) {
  fleet(10, Presence::kDiscovered);
  run(seconds(20));
  for (int i = 1; i <= 6; ++i) dialer_.down.insert(addr(i));
  run(seconds(120));
  EXPECT_EQ(host_.isolations, std::vector<bool>{true});
  EXPECT_TRUE(host_.events.empty()) << "their presence stays as it was";
  for (int i = 1; i <= 3; ++i) dialer_.down.erase(addr(i));
  run(seconds(20));
  EXPECT_EQ(host_.isolations, (std::vector<bool>{true, false}));
  run(seconds(20));
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(presence(i), Presence::kDiscovered);
  for (int i = 4; i <= 6; ++i)
    EXPECT_EQ(presence(i), Presence::kDisappeared) << "they are gone indeed";
}

TEST_F(ProberTest, HalfOfThemIsNotMost) {
  fleet(10, Presence::kDiscovered);
  run(seconds(20));
  for (int i = 1; i <= 5; ++i) dialer_.down.insert(addr(i));
  run(seconds(120));
  EXPECT_TRUE(host_.isolations.empty());
  EXPECT_EQ(host_.events.size(), 5u);
}

TEST_F(ProberTest, OneAfterTheOtherIsNoIsolation) {
  fleet(6, Presence::kDiscovered);
  run(seconds(20));
  for (int i = 1; i <= 5; ++i) {
    dialer_.down.insert(addr(i));
    run(seconds(100));
    EXPECT_EQ(presence(i), Presence::kDisappeared) << i;
  }
  EXPECT_TRUE(host_.isolations.empty());
}

TEST_F(ProberTest, ASingleNodeThatGoesIsGone) {
  fleet(1, Presence::kDiscovered);
  dialer_.down = {addr(1)};
  run(seconds(90));
  EXPECT_EQ(presence(1), Presence::kDisappeared);
  EXPECT_TRUE(host_.isolations.empty());
}

TEST_F(ProberTest, WhatCouldNotBeStoredIsFoundAgain) {
  fleet(3, Presence::kUnknown);
  host_.refuses = true;
  run(seconds(20));
  EXPECT_EQ(presence(1), Presence::kUnknown);
  host_.refuses = false;
  run(seconds(20));
  EXPECT_EQ(presence(1), Presence::kDiscovered);
}

TEST_F(ProberTest, FindingsOfOneMomentAreOneCommit) {
  fleet(50, Presence::kDisappeared);
  run(milliseconds(100));
  steady_.advance(seconds(20));  // all are due
  run(milliseconds(100));
  EXPECT_EQ(host_.events.size(), 50u);
  EXPECT_LE(host_.commits, 4);
}

}  // namespace
}  // namespace clusterctl::monitor
