#include "store/timed_store.h"

#include <gtest/gtest.h>

namespace clusterctl::store {
namespace {

TEST(TimedStore, CountsCommitsAndRefusalsAndPassesThemOn) {
  TimedStore store(make_memory_store());
  ASSERT_TRUE(store.commit({{"a", "{}", 0}}));
  ASSERT_TRUE(store.commit({{"b", "{}", 0}}));
  EXPECT_EQ(store.commit({{"b", "{}", 0}}).error().code, Code::kStale);
  EXPECT_EQ(store.load("")->size(), 2u);
  const auto numbers = store.numbers();
  EXPECT_EQ(numbers.commits.count(), 2u);
  EXPECT_EQ(numbers.failed, 1u);
}

}  // namespace
}  // namespace clusterctl::store
