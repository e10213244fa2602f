#include "store/timed_store.h"

#include <chrono>

namespace clusterctl::store {

Result<uint64_t> TimedStore::commit(const std::vector<Operation>& batch) {
  const auto begin = std::chrono::steady_clock::now();
  auto revision = store_->commit(batch);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const MutexLock lock(mutex_);
  if (revision) {
    numbers_.commits.add(took.count());
  } else {
    ++numbers_.failed;
  }
  return revision;
}

TimedStore::Numbers TimedStore::numbers() const {
  const MutexLock lock(mutex_);
  return numbers_;
}

}  // namespace clusterctl::store
