// A clock that stands still until the test moves it. Any thread.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace clusterctl {

class FakeClock final : public Clock {
 public:
  explicit FakeClock(Time start = Time{std::chrono::hours(24 * 365 * 50)})
      : now_(start.time_since_epoch().count()) {}
  Time now() const override { return Time{std::chrono::milliseconds(now_.load())}; }
  void set(Time t) { now_ = t.time_since_epoch().count(); }
  void advance(std::chrono::milliseconds d) { now_ += d.count(); }

 private:
  std::atomic<int64_t> now_;
};

}  // namespace clusterctl
