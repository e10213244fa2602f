// How often somebody who has not shown who he is may ask: a bucket for each address that fills
// slowly. Bounded in memory; safe from any thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/annotations.h"

namespace clusterctl::api {

class RateLimit {
 public:
  using Steady = std::chrono::steady_clock;

  // `burst` requests at once, then one in each `interval`. At most `addresses` are remembered;
  // beyond that those that asked least lately are forgotten.
  RateLimit(int burst, std::chrono::milliseconds interval, size_t addresses = 4096)
      : burst_(burst), interval_(interval), addresses_(addresses) {}

  // False: too often.
  bool admit(const std::string& address, Steady::time_point now = Steady::now()) EXCLUDES(mutex_);

 private:
  const int burst_;
  const std::chrono::milliseconds interval_;
  const size_t addresses_;
  Mutex mutex_;
  // When the bucket of an address will be full again; gone when it is.
  std::map<std::string, Steady::time_point> full_at_ GUARDED_BY(mutex_);
};

// "10.0.0.5" of "10.0.0.5:4711", "[::1]" of "[::1]:4711".
std::string address_without_port(const std::string& peer);

}  // namespace clusterctl::api
