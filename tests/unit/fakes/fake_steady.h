// A monotonic clock that moves only when told to. Any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace clusterctl {

class FakeSteady {
 public:
  std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::time_point(std::chrono::milliseconds(ms_.load()));
  }
  void advance(std::chrono::milliseconds d) { ms_ += d.count(); }

 private:
  std::atomic<int64_t> ms_{1'000'000};
};

}  // namespace clusterctl
