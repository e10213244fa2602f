// Time as a collaborator, so that tests decide what time it is. Implementations may be called from
// any thread.
#pragma once

#include <chrono>

namespace clusterctl {

// Wall-clock time, UTC, milliseconds: what is stored, sent and shown.
using Time = std::chrono::sys_time<std::chrono::milliseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now());
  }
};

}  // namespace clusterctl
