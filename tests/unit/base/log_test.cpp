#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clusterctl {
namespace {

TEST(Log, IsOneLineAnEventWhateverTheText) {
  testing::internal::CaptureStderr();
  log::info("node {} says {}", "n1", "first\nsecond {} %s \x1b[31m");
  log::write(log::Level::kError, "{not a format} %n");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, testing::HasSubstr("Z info node n1 says first second {} %s  [31m\n"));
  EXPECT_THAT(text, testing::HasSubstr("Z error {not a format} %n\n"));
}

TEST(Log, LevelsHideWhatIsBelowThem) {
  testing::internal::CaptureStderr();
  log::set_level(log::Level::kError);
  log::info("hidden");
  log::warn("hidden");
  log::error("shown");
  log::set_level(log::Level::kInfo);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("shown"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("hidden")));
}

}  // namespace
}  // namespace clusterctl
