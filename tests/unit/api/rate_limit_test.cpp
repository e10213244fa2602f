#include "api/rate_limit.h"

#include <gtest/gtest.h>

namespace clusterctl::api {
namespace {

using std::chrono::seconds;

TEST(RateLimit, ABurstAndThenOneInEachInterval) {
  RateLimit limit(3, seconds(1));
  const auto t = RateLimit::Steady::time_point{};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.admit("a", t));
  EXPECT_FALSE(limit.admit("a", t));
  EXPECT_TRUE(limit.admit("a", t + seconds(1)));
  EXPECT_FALSE(limit.admit("a", t + seconds(1)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.admit("a", t + seconds(60)));
  EXPECT_FALSE(limit.admit("a", t + seconds(60)));
}

TEST(RateLimit, OneAddressTakesNothingFromAnother) {
  RateLimit limit(1, seconds(1));
  const auto t = RateLimit::Steady::time_point{};
  EXPECT_TRUE(limit.admit("a", t));
  EXPECT_FALSE(limit.admit("a", t));
  EXPECT_TRUE(limit.admit("b", t));
}

TEST(RateLimit, RemembersSoManyAddressesAndTheBusiestLast) {
  RateLimit limit(2, seconds(10), 3);
  const auto t = RateLimit::Steady::time_point{};
  EXPECT_TRUE(limit.admit("busy", t));
  EXPECT_TRUE(limit.admit("busy", t));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limit.admit(std::to_string(i), t));
  EXPECT_FALSE(limit.admit("busy", t));
}

TEST(RateLimit, PortsDoNotCount) {
  EXPECT_EQ(address_without_port("10.0.0.5:4711"), "10.0.0.5");
  EXPECT_EQ(address_without_port("[::1]:4711"), "[::1]");
}

}  // namespace
}  // namespace clusterctl::api
