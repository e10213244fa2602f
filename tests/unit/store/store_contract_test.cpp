// The contract of every back end: the same cases on all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <thread>

#include "base/strings.h"
#include "fakes/temp_dir.h"
#include "operations.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Store> open() {
    if (GetParam() == "memory") return make_memory_store();
    auto store = open_sqlite_store(dir_.path() / fmt::format("{}.db", ++opened_));
    EXPECT_TRUE(store) << store.error().line();
    return std::move(*store);
  }

  TempDir dir_;
  int opened_ = 0;
  std::unique_ptr<Store> store_ = open();
};

std::vector<std::string> keys(Store& store, std::string_view prefix) {
  std::vector<std::string> out;
  const auto records = store.load(prefix);
  if (!records) return {"error: " + records.error().line()};
  for (const Record& record : *records) out.push_back(record.key);
  return out;
}

TEST_P(StoreContract, StartsEmpty) {
  EXPECT_THAT(keys(*store_, ""), IsEmpty());
}

TEST_P(StoreContract, KeepsWhatWasCommitted) {
  const auto revision = store_->commit({put("nodes/a", R"({"v":1})")});
  ASSERT_TRUE(revision);
  EXPECT_GT(*revision, 0u);
  const auto records = store_->load("nodes/a");
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ(records->front().value, R"({"v":1})");
  EXPECT_EQ(records->front().revision, *revision);
}

TEST_P(StoreContract, LoadsByPrefixSortedByBytes) {
  ASSERT_TRUE(store_->commit({put("nodes/b", "1"), put("nodes/a", "1"), put("nodes0", "1"),
                              put("node", "1"), put("jobs/x", "1"), put("nodes/\xc3\xa4", "1"),
                              put("nodes/A", "1")}));
  EXPECT_THAT(keys(*store_, "nodes/"),
              ElementsAre("nodes/A", "nodes/a", "nodes/b", "nodes/\xc3\xa4"));
  EXPECT_THAT(keys(*store_, "nodes/\xc3\xa4"), ElementsAre("nodes/\xc3\xa4"));
  EXPECT_EQ(keys(*store_, "").size(), 7u);
  EXPECT_THAT(keys(*store_, "zzz"), IsEmpty());
}

TEST_P(StoreContract, PatternCharactersInAPrefixMeanThemselves) {
  ASSERT_TRUE(store_->commit(
      {put("a%b", "1"), put("axb", "1"), put("a_b", "1"), put("a*b", "1"), put("\xff\xff", "1")}));
  EXPECT_THAT(keys(*store_, "a%"), ElementsAre("a%b"));
  EXPECT_THAT(keys(*store_, "a_"), ElementsAre("a_b"));
  EXPECT_THAT(keys(*store_, "a*"), ElementsAre("a*b"));
  EXPECT_THAT(keys(*store_, "\xff"), ElementsAre("\xff\xff"));
}

TEST_P(StoreContract, KeepsAnyBytesOfAValue) {
  const std::string value("a\0b'\"; DROP TABLE record;--\n\xf0\x9f\x98\x80", 32);
  ASSERT_TRUE(store_->commit({put("k'\"; --", value), put("empty", "")}));
  EXPECT_EQ(store_->load("k'")->front().value, value);
  EXPECT_EQ(store_->load("empty")->front().value, "");
}

TEST_P(StoreContract, RevisionsGrowAndAreSharedByOneBatch) {
  const auto first = store_->commit({put("a", "1"), put("b", "1")});
  const auto second = store_->commit({put("a", "2")});
  ASSERT_TRUE(first && second);
  EXPECT_GT(*second, *first);
  const auto records = store_->load("");
  EXPECT_EQ((*records)[0].revision, *second);
  EXPECT_EQ((*records)[1].revision, *first);
}

TEST_P(StoreContract, ARevisionIsNeverUsedTwice) {
  const auto first = store_->commit({put("a", "1")});
  const auto deleted = store_->commit({erase("a")});
  const auto again = store_->commit({put("a", "1", 0)});
  ASSERT_TRUE(first && deleted && again);
  EXPECT_GT(*again, *first);
  const auto old = store_->commit({put("a", "2", *first)});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Code::kStale);
}

TEST_P(StoreContract, AFailedExpectationChangesNothing) {
  const auto first = store_->commit({put("a", "1")});
  ASSERT_TRUE(first);
  for (const Operation& wrong : {put("a", "2", 0), put("a", "2", *first + 1), put("none", "2", 7),
                                 erase("a", *first + 1), erase("a", 0)}) {
    const auto refused = store_->commit({put("b", "1"), wrong, put("c", "1")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kStale);
    EXPECT_EQ(refused.error().reason, "revision");
  }
  EXPECT_THAT(keys(*store_, ""), ElementsAre("a"));
  EXPECT_EQ(store_->load("a")->front().value, "1");
  const auto next = store_->commit({put("a", "2", *first), put("new", "1", 0)});
  EXPECT_TRUE(next) << "refused batches must not disturb later ones";
}

TEST_P(StoreContract, DeletingWhatIsNotThereIsFine) {
  EXPECT_TRUE(store_->commit({erase("none"), erase("none2", 0)}));
  EXPECT_THAT(keys(*store_, ""), IsEmpty());
}

TEST_P(StoreContract, AnEmptyBatchChangesNothing) {
  const auto first = store_->commit({put("a", "1")});
  const auto empty = store_->commit({});
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, *first);
}

TEST_P(StoreContract, LimitsAreTheSameEverywhere) {
  std::vector<Operation> many;
  for (size_t i = 0; i < kMaxOperations; ++i) many.push_back(put(fmt::format("k{}", i), "1"));
  EXPECT_TRUE(store_->commit(many));
  many.push_back(put("one more", "1"));
  const std::string largest(kMaxValueBytes, 'x');
  EXPECT_TRUE(store_->commit({put("large", largest)}));
  EXPECT_TRUE(store_->commit(
      {put("a", largest), put("b", std::string(kMaxBatchBytes - kMaxValueBytes - 2, 'x'))}));
  const std::vector<std::vector<Operation>> too_large = {
      many,
      {put("large2", largest + "x")},
      {put("a", largest), put("b", std::string(kMaxBatchBytes - kMaxValueBytes - 1, 'x'))}};
  for (const auto& batch : too_large) {
    const auto refused = store_->commit(batch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kTooLarge);
    EXPECT_EQ(refused.error().reason, "batch");
  }
  EXPECT_THAT(keys(*store_, "large2"), IsEmpty());
  EXPECT_THAT(keys(*store_, "one more"), IsEmpty());
}

TEST_P(StoreContract, RefusesABatchThatContradictsItself) {
  for (const auto& batch :
       std::vector<std::vector<Operation>>{{put("a", "1"), erase("a")}, {put("", "1")}}) {
    const auto refused = store_->commit(batch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
  }
  EXPECT_THAT(keys(*store_, ""), IsEmpty());
}

TEST_P(StoreContract, OneOfManyRivalsWins) {
  std::vector<std::thread> threads;
  std::atomic<int> won = 0, lost = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto mine = store_->commit({put("lock", fmt::format("{}", i), 0)});
      (mine ? won : lost)++;
      for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(store_->commit({put(fmt::format("t{}/{}", i, n), "1", 0)}));
        ASSERT_TRUE(store_->load("t"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 7);
  EXPECT_EQ(keys(*store_, "t").size(), 160u);
}

// Random batches against the simplest model there is.
TEST_P(StoreContract, BehavesLikeAMap) {
  const bool held = rc::check("store == map", [this] {
    const auto store = open();
    std::map<std::string, std::pair<std::string, uint64_t>> model;
    uint64_t last = 0;
    const int batches = *rc::gen::inRange(1, 12);
    for (int b = 0; b < batches; ++b) {
      std::map<std::string, Operation> unique;
      for (int n = *rc::gen::inRange(1, 6); n > 0; --n) {
        const std::string key(1, *rc::gen::inRange('a', 'f'));
        Operation operation{key, std::nullopt, std::nullopt};
        if (*rc::gen::inRange(0, 3) != 0) operation.value = *rc::gen::arbitrary<std::string>();
        const int kind = *rc::gen::inRange(0, 8);
        if (kind < 3) operation.expected = model.contains(key) ? model[key].second : 0;
        if (kind == 3) operation.expected = *rc::gen::inRange<uint64_t>(0, 20);
        unique[key] = operation;
      }
      std::vector<Operation> batch;
      bool expected = true;
      for (auto& [key, operation] : unique) {
        const uint64_t found = model.contains(key) ? model[key].second : 0;
        if (operation.expected && *operation.expected != found) expected = false;
        batch.push_back(operation);
      }
      const auto done = store->commit(batch);
      RC_ASSERT(done.has_value() == expected);
      if (!done) continue;
      RC_ASSERT(*done > last);
      last = *done;
      for (const Operation& operation : batch) {
        if (operation.value) {
          model[operation.key] = {*operation.value, last};
        } else {
          model.erase(operation.key);
        }
      }
    }
    const auto records = store->load("");
    RC_ASSERT(records.has_value());
    RC_ASSERT(records->size() == model.size());
    for (const Record& record : *records) {
      RC_ASSERT(model[record.key] == std::make_pair(record.value, record.revision));
    }
  });
  EXPECT_TRUE(held);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, ::testing::Values("memory", "sqlite"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace clusterctl::store
