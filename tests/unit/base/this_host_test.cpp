#include "base/this_host.h"

#include <gmock/gmock.h>

namespace clusterctl {
namespace {

TEST(ThisHost, IsKnownByItsLoopbackAndItsName) {
  const auto names = this_host_names();
  EXPECT_THAT(names, testing::Contains("127.0.0.1"));
  EXPECT_THAT(names, testing::Contains("localhost"));
  EXPECT_GT(names.size(), 2U);
  for (const std::string& name : names) EXPECT_EQ(name.find('%'), std::string::npos) << name;
}

TEST(ThisHost, TheMachineIdIsOneLine) {
  EXPECT_EQ(this_machine_id().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace clusterctl
