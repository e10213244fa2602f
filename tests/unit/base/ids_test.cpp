#include "base/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "fakes/fake_clock.h"

namespace clusterctl {
namespace {

using std::chrono::milliseconds;
using ::testing::MatchesRegex;

TEST(NodeIds, AreTwelveBase32Characters) {
  FakeClock clock;
  RandomIds ids(clock);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.node_id();
    EXPECT_THAT(id, MatchesRegex("[a-z2-7]+"));
    EXPECT_EQ(id.size(), 12u);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(Ulids, CarryTheTime) {
  FakeClock clock(Time{milliseconds(1469918176385)});
  RandomIds ids(clock);
  const std::string id = ids.ulid();
  EXPECT_EQ(id.size(), 26u);
  EXPECT_EQ(id.substr(0, 10), "01aryz6s41");
  EXPECT_EQ(id.find_first_not_of("0123456789abcdefghjkmnpqrstvwxyz"), std::string::npos);
}

TEST(Ulids, GrowWithinOneMillisecondAndWhenTheClockStepsBack) {
  FakeClock clock;
  RandomIds ids(clock);
  std::string last;
  for (int i = 0; i < 3000; ++i) {
    if (i == 1000) clock.advance(milliseconds(-3600000));
    if (i == 2000) clock.advance(milliseconds(7200000));
    const std::string id = ids.ulid();
    ASSERT_LT(last, id) << "after " << i;
    last = id;
  }
}

TEST(Ulids, AreUniqueAcrossThreadsAndOrderedInEach) {
  SystemClock clock;
  RandomIds ids(clock);
  std::vector<std::vector<std::string>> made(8);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) mine.push_back(ids.ulid());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& mine : made) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 16000u);
}

TEST(Ulids, OfTwoDaemonsDiffer) {
  FakeClock clock;
  EXPECT_NE(RandomIds(clock).ulid(), RandomIds(clock).ulid());
}

TEST(RandomHex, HasTwoDigitsAByte) {
  EXPECT_EQ(random_hex(0), "");
  EXPECT_THAT(random_hex(32), MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(random_hex(32).size(), 64u);
  EXPECT_EQ(random_hex(1000).size(), 2000u);
  EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace clusterctl
