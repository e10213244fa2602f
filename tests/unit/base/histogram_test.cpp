#include "base/histogram.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/this_process.h"

namespace clusterctl {
namespace {

TEST(Histogram, CountsWhatTookAtMostTheEndOfEachClass) {
  Histogram h;
  for (const double seconds : {0.0, 0.0005, 0.0006, 0.3, 10.0, 11.0}) h.add(seconds);
  EXPECT_EQ(h.count(), 6u);
  EXPECT_DOUBLE_EQ(h.sum(), 21.3011);
  EXPECT_EQ(h.at_most(0), 2u) << "the end of a class belongs to it";
  EXPECT_EQ(h.at_most(1), 3u);
  EXPECT_EQ(h.at_most(8), 3u);
  EXPECT_EQ(h.at_most(9), 4u);
  EXPECT_EQ(h.at_most(Histogram::kBounds.size() - 1), 5u) << "11 s is beyond every class";
}

TEST(ThisProcess, CountsItself) {
  const auto p = this_process();
  ASSERT_TRUE(p);
  EXPECT_GE(p->threads, 1);
  EXPECT_GT(p->resident, 1 << 20);
  EXPECT_GT(p->virtual_size, p->resident);
  EXPECT_GE(p->open_descriptors, 3);
  EXPECT_GE(p->max_descriptors, p->open_descriptors);
  EXPECT_GE(p->cpu_seconds, 0);
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  EXPECT_NEAR(p->started, now.count(), 3600);
}

}  // namespace
}  // namespace clusterctl
