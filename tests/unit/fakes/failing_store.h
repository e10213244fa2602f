// A store that fails at one commit, in each way a store can fail.
#pragma once

#include <atomic>

#include "store/store.h"

namespace clusterctl::fakes {

enum class Way {
  kRefusedOnce,       // a full disk for a moment; the daemon lives on
  kDiesBefore,        // the daemon dies with the commit not written
  kDiesAfterWriting,  // the commit is durable, nobody was told
};

// Passes everything on to `inner`, except around commit number `at`.
class FailingStore final : public store::Store {
 public:
  FailingStore(store::Store& inner, Way way, int at) : inner_(inner), way_(way), at_(at) {}

  Result<std::vector<store::Record>> load(std::string_view prefix) override {
    return inner_.load(prefix);
  }
  Result<uint64_t> commit(const std::vector<store::Operation>& batch) override {
    if (dead_) return refuse();
    if (++count_ != at_) return inner_.commit(batch);
    hit_ = true;
    if (way_ == Way::kRefusedOnce) return refuse();
    if (way_ == Way::kDiesAfterWriting) (void)inner_.commit(batch);
    dead_ = true;
    return refuse();
  }
  bool hit() const { return hit_; }
  bool dead() const { return dead_; }

 private:
  static tl::unexpected<Error> refuse() {
    return fail(Code::kUnavailable, "no_space", "the disk is full");
  }

  store::Store& inner_;
  const Way way_;
  const int at_;
  int count_ = 0;  // the controller commits under its lock
  std::atomic<bool> hit_ = false, dead_ = false;
};

}  // namespace clusterctl::fakes
