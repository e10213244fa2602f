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

// Passes everything on to `inner`, except around commit number `at` since it was armed; 0: never.
class FailingStore final : public store::Store {
 public:
  explicit FailingStore(store::Store& inner, Way way = Way::kRefusedOnce, int at = 0)
      : inner_(inner), way_(way), at_(at) {}

  void arm(Way way, int at) {
    way_ = way;
    hit_ = false;
    count_ = 0;
    at_ = at;
  }

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
  int commits() const { return count_; }  // since it was armed

 private:
  static tl::unexpected<Error> refuse() {
    return fail(Code::kUnavailable, "no_space", "the disk is full");
  }

  store::Store& inner_;
  std::atomic<Way> way_;
  std::atomic<int> at_, count_ = 0;
  std::atomic<bool> hit_ = false, dead_ = false;
};

}  // namespace clusterctl::fakes
