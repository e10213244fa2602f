// RestClient through libcurl: Unix socket, TCP or TLS, bearer token, several servers (the first
// that answers is kept). Connecting takes at most 3 s, answers have a limit in size and time,
// redirects are not followed, proxies are never used for local servers. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/endpoint.h"
#include "client/rest_client.h"

namespace clusterctl::client {

struct Settings {
  std::vector<Endpoint> endpoints;
  std::string token;  // empty: none; never sent in the clear to another machine
  // Of https:// servers. The pin decides alone; without both: the system's authorities.
  std::string ca_pin;  // SHA-256 of the authority's certificate, 64 lower-case digits, or empty
  fs::path ca_file;    // authorities in PEM, or empty
  std::string user_agent = "clusterctl";
  std::chrono::milliseconds connect_timeout{3000};
  std::chrono::milliseconds request_timeout{60000};
  std::chrono::seconds silence{
      45};  // a stream without a byte for so long is dead: heartbeats come every 15 s
  size_t max_answer_bytes = 64 << 20;  // of send()
  // A server that has too much to do (429) says after how long to ask again. Called with that;
  // true: it has passed, ask again. None: such an answer is an Error at once.
  std::function<bool(std::chrono::seconds, const KeepGoing&)> wait_for_turn = nullptr;
};
std::unique_ptr<RestClient> make_curl_client(Settings settings);

}  // namespace clusterctl::client
