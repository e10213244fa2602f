// What is measured of the daemon itself for /metrics, besides the fleet. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "api/http.h"
#include "base/annotations.h"
#include "base/histogram.h"

namespace clusterctl::api {

// How long requests took, by method, route and class of the answer. What a client can make up (a
// path, a method) is no label of its own, so there are only so many of them.
class RequestTimes {
 public:
  using Key = std::tuple<std::string, std::string, std::string>;  // GET, /v1/nodes/{n}, 2xx

  void add(const Request& request, int status, std::chrono::duration<double> took) EXCLUDES(mutex_);
  std::map<Key, Histogram> read() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<Key, Histogram> times_ GUARDED_BY(mutex_);
};

struct StoreNumbers {
  Histogram commits;    // those that succeeded
  uint64_t failed = 0;  // that the store refused
};

struct EngineNumbers {
  size_t unix_connections = 0, tcp_connections = 0;  // whose request or answer is on its way
  size_t followers = 0, max_followers = 0;
};

// Filled by one thread before the first request; then `requests` alone changes.
struct Meters {
  RequestTimes requests;
  std::function<EngineNumbers()> engine;  // null: not known
  std::function<StoreNumbers()> store;    // null: not known
};

}  // namespace clusterctl::api
