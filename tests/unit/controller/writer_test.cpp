// A change that is larger than a batch: the store fails at each of its commits, in each way. It is
// there wholly or not at all, nothing later is undone by it, and nothing of it is left over.
#include "controller/writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fakes/failing_store.h"
#include "fakes/fake_clock.h"

namespace clusterctl::controller {
namespace {

using fakes::FailingStore;
using fakes::Way;

constexpr int kNodes = 250;  // more than two batches

fleet::Node node(int number, uint64_t version) {
  fleet::Node out;
  out.id = fmt::format("aaaaaaaa{:04}", number);
  out.name = "n" + std::to_string(number);
  out.spec.addr = "10.0.0.1";
  out.resource_version = version;
  return out;
}
Change of_nodes(int count, uint64_t version) {
  Change out;
  for (int i = 0; i < count; ++i) {
    fleet::Node one = node(i, version);
    out.nodes[one.id] = one;
  }
  out.events.push_back({0, {}, "node.updated", "", "", "all"});
  return out;
}

class LargeChange : public testing::TestWithParam<Way> {
 protected:
  // Versions of all nodes as the next daemon reads them; 0 when they are not all the same, but for
  // node 7, whose version is given apart.
  std::pair<uint64_t, uint64_t> reread() {
    EventLog events;
    Writer next(*durable_, clock_, events);
    const auto loaded = next.load();
    EXPECT_TRUE(loaded) << loaded.error().line();
    uint64_t all = 0;
    const auto state = next.state();
    for (const auto& [id, n] : state->fleet->nodes) {
      if (n.name == "n7") continue;
      if (all == 0) all = n.resource_version;
      if (all != n.resource_version) return {0, 0};
    }
    EXPECT_TRUE(durable_->load("commit/")->empty());
    return {all, next.state()->fleet->nodes.at(node(7, 0).id).resource_version};
  }

  // False when there are fewer commits.
  bool live(int at) {
    durable_ = store::make_memory_store();
    {
      EventLog events;
      Writer first(*durable_, clock_, events);
      EXPECT_TRUE(first.load());
      EXPECT_TRUE(first.commit(of_nodes(kNodes, 1)));
    }
    FailingStore failing(*durable_, GetParam(), at);
    EventLog events;
    Writer writer(failing, clock_, events);
    EXPECT_TRUE(writer.load());
    bool done = writer.commit(of_nodes(kNodes, 2)).has_value();
    if (!failing.hit()) return false;
    if (failing.dead()) {
      const auto [all, seven] = reread();
      EXPECT_NE(all, 0U) << "a part of it";
      EXPECT_EQ(all, seven);
      EXPECT_TRUE(!done || all == 2U) << "it was said to be done";
      return true;
    }
    EXPECT_EQ(writer.state()->fleet->nodes.at(node(9, 0).id).resource_version, done ? 2U : 1U);
    EXPECT_TRUE(writer.trouble());
    if (!done) done = writer.commit(of_nodes(kNodes, 2)).has_value();
    EXPECT_TRUE(done);
    Change later;
    later.nodes[node(7, 0).id] = node(7, 3);
    const auto stored = writer.commit(std::move(later));
    EXPECT_TRUE(stored) << stored.error().line();
    EXPECT_FALSE(writer.trouble());
    EXPECT_EQ(reread(), std::pair(uint64_t{2}, uint64_t{3}));
    return true;
  }

  FakeClock clock_;
  std::unique_ptr<store::Store> durable_;
};

TEST_P(LargeChange, IsThereWhollyOrNotAtAll) {
  int at = 1;
  while (live(at)) {
    ASSERT_FALSE(HasFailure()) << "with the failure at commit " << at;
    ++at;
  }
  EXPECT_GT(at, 6) << "it has more commits than that";
}
INSTANTIATE_TEST_SUITE_P(Ways, LargeChange,
                         testing::Values(Way::kRefusedOnce, Way::kDiesBefore,
                                         Way::kDiesAfterWriting));

// Pieces of a larger one that never came to its commit point are no part of the next.
TEST(Writer, PiecesOfAnEarlierChangeAreLeftOut) {
  auto durable = store::make_memory_store();
  FakeClock clock;
  EventLog events;
  {
    FailingStore failing(*durable, Way::kRefusedOnce, 1000);
    Writer writer(failing, clock, events);
    ASSERT_TRUE(writer.load());
    ASSERT_TRUE(writer.commit(of_nodes(10, 1)));
  }
  for (int i = 1; i <= 9; ++i) {
    const std::string key = fmt::format("commit/{:06}", i);
    const std::string wrong = R"({"v":1,"changes":[["globals","{\"v\":1,\"vars\":{\"a\":1}}"]]})";
    ASSERT_TRUE(durable->commit({{key, wrong, std::nullopt}}));
  }
  ASSERT_TRUE(durable->commit({{"commit/000000", R"({"v":1,"changes":[]})", std::nullopt},
                               {"commit/ready", R"({"v":1,"chunks":1})", std::nullopt}}));
  EventLog others;
  Writer next(*durable, clock, others);
  ASSERT_TRUE(next.load());
  EXPECT_EQ(next.state()->fleet->globals, Json::object());
  EXPECT_TRUE(durable->load("commit/")->empty());
}

TEST(Writer, TheProbeEndsTheTrouble) {
  auto durable = store::make_memory_store();
  FakeClock clock;
  EventLog events;
  FailingStore failing(*durable, Way::kRefusedOnce, 1);
  Writer writer(failing, clock, events);
  ASSERT_TRUE(writer.load());
  ASSERT_FALSE(writer.commit(of_nodes(1, 1)));
  ASSERT_TRUE(writer.trouble());
  EXPECT_EQ(writer.trouble()->reason, "no_space");
  writer.probe();
  EXPECT_FALSE(writer.trouble());
  EXPECT_TRUE(durable->load("meta/probe")->empty());
}

}  // namespace
}  // namespace clusterctl::controller
