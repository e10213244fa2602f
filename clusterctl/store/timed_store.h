// A store that remembers how long its commits took. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/annotations.h"
#include "base/histogram.h"
#include "store/store.h"

namespace clusterctl::store {

class TimedStore final : public Store {
 public:
  struct Numbers {
    Histogram commits;    // those that succeeded
    uint64_t failed = 0;  // that the store refused
  };

  explicit TimedStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  Result<std::vector<Record>> load(std::string_view prefix) override {
    return store_->load(prefix);
  }
  Result<uint64_t> commit(const std::vector<Operation>& batch) override;
  Numbers numbers() const;

 private:
  const std::unique_ptr<Store> store_;
  mutable Mutex mutex_;
  Numbers numbers_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::store
