#include "controller/capacity.h"

#include <gtest/gtest.h>

namespace clusterctl::controller {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(Capacity, TwiceTheProcessorsIfTheMemoryAllows) {
  EXPECT_EQ(default_parallel_runs(8, 64 * kGiB), 16);
  EXPECT_EQ(default_parallel_runs(8, 3 * kGiB), 10);
  EXPECT_EQ(default_parallel_runs(8, std::nullopt), 16);
}

TEST(Capacity, AtLeastTwoAndNeverMoreThanTheSettingAllows) {
  EXPECT_EQ(default_parallel_runs(0, std::nullopt), 2);  // the number of processors is not known
  EXPECT_EQ(default_parallel_runs(64, 0), 2);
  EXPECT_EQ(default_parallel_runs(4000, 1000000 * kGiB), 1000);
}

TEST(Capacity, ReadsMeminfo) {
  EXPECT_EQ(available_memory("MemTotal:  100 kB\nMemAvailable:    2048 kB\nX: 1 kB\n"),
            2048U * 1024);
  EXPECT_FALSE(available_memory("MemTotal: 100 kB\n"));
  EXPECT_FALSE(available_memory("MemAvailable:"));
  EXPECT_FALSE(available_memory("MemAvailable: many kB"));
  EXPECT_FALSE(available_memory("MemAvailable: 5"));
}

}  // namespace
}  // namespace clusterctl::controller
