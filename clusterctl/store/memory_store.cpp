#include <map>

#include "base/annotations.h"
#include "store/batch.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

class MemoryStore final : public Store {
 public:
  Result<std::vector<Record>> load(std::string_view prefix) override {
    MutexLock lock(mutex_);
    std::vector<Record> out;
    for (auto it = records_.lower_bound(prefix); it != records_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      out.push_back(it->second);
    }
    return out;
  }

  Result<uint64_t> commit(const std::vector<Operation>& batch) override {
    if (auto ok = check_batch(batch); !ok) return fail(ok.error());
    MutexLock lock(mutex_);
    for (const Operation& operation : batch) {
      const auto it = records_.find(operation.key);
      const uint64_t found = it == records_.end() ? 0 : it->second.revision;
      if (operation.expected && *operation.expected != found) return stale(operation, found);
    }
    if (batch.empty()) return revision_;
    ++revision_;
    for (const Operation& operation : batch) {
      if (operation.value) {
        records_[operation.key] = Record{operation.key, *operation.value, revision_};
      } else {
        records_.erase(operation.key);
      }
    }
    return revision_;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Record, std::less<>> records_ GUARDED_BY(mutex_);
  uint64_t revision_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<Store> make_memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace clusterctl::store
