// Who is notified of what, as the daemon's file says it. Plain values; start-up code, one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace clusterctl::notify {

struct Receiver {
  std::string name;  // unique; deliveries go on under it after a restart
  std::string url;   // http or https; may hold a token in path or query, so it is never shown whole
  fs::path secret_file;
  std::string secret;  // read_secrets() fills it; never logged
  std::set<std::string> events;
  fs::path ca_file;   // empty: the system's authorities
  std::string proxy;  // empty: none, whatever the environment says
};

// The types of fleet events (docs/rest.md) that can be sent.
const std::vector<std::string>& event_types();

// `list` is the value of `notifications`: each item {url, secret_file, name?, events?, ca_file?,
// proxy?}. An unknown key or event is an Error with the nearest known one; two receivers of one
// name are an Error.
Result<std::vector<Receiver>> parse_receivers(const Json& list);

// Reads every secret_file: at least 16 characters, readable by the daemon's user or root alone.
Status read_secrets(std::vector<Receiver>& receivers);

// "https://hooks.example.com:8443": what may be shown of a URL.
std::string origin_of(std::string_view url);

}  // namespace clusterctl::notify
