#include "controller/log_keeper.h"

#include <gtest/gtest.h>

namespace clusterctl::controller {
namespace {

using std::chrono::hours;
constexpr Time kNow{std::chrono::hours(24 * 365)};

// Five logs of 100 bytes, one a day; "a" is the oldest.
std::vector<KeptLog> five() {
  std::vector<KeptLog> out;
  for (int i = 0; i < 5; ++i)
    out.push_back(
        {std::string(1, static_cast<char>('a' + i)), kNow - hours(24 * (5 - i) - 1), 100});
  return out;
}

using Names = std::vector<std::string>;

TEST(LogsToDrop, NothingWithinTheLimits) {
  EXPECT_EQ(logs_to_drop(five(), {5, 90, 500}, kNow), Names());
  EXPECT_EQ(logs_to_drop({}, {5, 90, 500}, kNow), Names());
}

TEST(LogsToDrop, TheOldestGoFirstForNumberBytesAndAge) {
  EXPECT_EQ(logs_to_drop(five(), {2, 90, 500}, kNow), (Names{"a", "b", "c"}));
  EXPECT_EQ(logs_to_drop(five(), {5, 90, 499}, kNow), (Names{"a"}));
  EXPECT_EQ(logs_to_drop(five(), {5, 90, 250}, kNow), (Names{"a", "b", "c"}));
  EXPECT_EQ(logs_to_drop(five(), {5, 3, 500}, kNow), (Names{"a", "b"}));
  EXPECT_EQ(logs_to_drop(five(), {5, 0, 500}, kNow + hours(24 * 10000)), Names()) << "of any age";
}

// A small old log does not outlive a large newer one.
TEST(LogsToDrop, WhatIsOlderThanWhatDidNotFitGoesAsWell) {
  auto logs = five();
  logs[2].bytes = 1000;
  EXPECT_EQ(logs_to_drop(logs, {5, 90, 500}, kNow), (Names{"a", "b", "c"}));
}

TEST(LogsToDrop, TheNewestGoesForItsAgeOnly) {
  auto logs = five();
  logs[4].bytes = 1000;
  EXPECT_EQ(logs_to_drop(logs, {5, 90, 500}, kNow), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(logs_to_drop(logs, {5, 90, 500}, kNow + hours(24 * 91)).size(), 5u);
}

}  // namespace
}  // namespace clusterctl::controller
