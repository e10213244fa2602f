// How a notification leaves the machine. One thread calls start() and wait(); wake() may be called
// from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "notify/receiver.h"

namespace clusterctl::notify {

struct Post {
  uint64_t ticket = 0;  // names it in its Outcome
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // JSON
  fs::path ca_file;
  std::string proxy;
};

struct Outcome {
  uint64_t ticket = 0;
  int status = 0;     // of the answer; 0: none came
  std::string error;  // one line, when none came
  bool delivered() const { return status >= 200 && status < 300; }
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Never waits.
  virtual void start(Post post) = 0;
  // Drives what is under way for at most `limit`; returns earlier when something has ended or on
  // wake().
  virtual std::vector<Outcome> wait(std::chrono::milliseconds limit) = 0;
  virtual void wake() = 0;
};

struct TransportOptions {
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{15'000};
  std::string user_agent = "clusterctl";
};

// libcurl: http and https only, certificates checked, redirects not followed, no proxy but the
// receiver's own. Unfinished posts are given up at once when it is destroyed.
std::unique_ptr<Transport> make_curl_transport(TransportOptions options);

}  // namespace clusterctl::notify
