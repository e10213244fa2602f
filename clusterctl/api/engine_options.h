// The limits within which the HTTP engine works. Plain values.
#pragma once

#include <algorithm>
#include <chrono>

#include "api/deadlines.h"
#include "api/request_reader.h"

namespace clusterctl::api {

struct EngineOptions {
  RequestLimits limits;
  int workers = 8;  // threads that run handlers
  size_t max_connections =
      2000;  // for each listener, so that TCP cannot use up the Unix socket's; streams do not count
  size_t max_streams = 2000;       // together; beyond: 429
  size_t max_buffered = 64 << 20;  // request bytes held for all connections together; beyond: 503
  std::chrono::milliseconds request_timeout{
      30'000};                                     // from the first byte of a request to its last
  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  std::chrono::milliseconds write_timeout{
      30'000};  // a client that takes nothing of its answer for so long is dropped
  std::chrono::milliseconds linger{
      5'000};  // how long the rest of a refused request is swallowed, so that the answer arrives
  std::chrono::milliseconds heartbeat{15'000};
  std::chrono::milliseconds drain{
      2'000};  // stop(): how long running requests may finish (real time)
  SteadyClock now = [] { return std::chrono::steady_clock::now(); };
};

// The numbers of connections and streams for which the process has descriptors, at most the
// defaults: two listeners, streams, and 256 for everything else.
inline EngineOptions options_for(size_t descriptors) {
  EngineOptions out;
  const size_t each = descriptors > 556 ? (descriptors - 256) / 3 : 100;
  out.max_connections = std::min(out.max_connections, each);
  out.max_streams = std::min(out.max_streams, each);
  return out;
}

}  // namespace clusterctl::api
