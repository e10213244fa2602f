// A store that dies at a chosen commit. One test thread arms it; any thread may use it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "store/store.h"

namespace clusterctl::fakes {

// Loses its power at a commit: that one and all later ones fail until it is mended.
class MortalStore final : public store::Store {
 public:
  explicit MortalStore(std::unique_ptr<store::Store> inner) : inner_(std::move(inner)) {}
  Result<std::vector<store::Record>> load(std::string_view prefix) override {
    return inner_->load(prefix);
  }
  Result<uint64_t> commit(const std::vector<store::Operation>& batch) override {
    if (left_ >= 0 && left_-- == 0) {
      left_ = 0;
      dead_ = true;
      return fail(Code::kUnavailable, "no_space", "the store is dead");
    }
    return inner_->commit(batch);
  }
  void die_after(int commits) { left_ = commits; }
  void mend() {
    left_ = -1;
    dead_ = false;
  }
  bool dead() const { return dead_; }

 private:
  std::unique_ptr<store::Store> inner_;
  std::atomic<int> left_{-1};
  std::atomic<bool> dead_{false};
};

}  // namespace clusterctl::fakes
