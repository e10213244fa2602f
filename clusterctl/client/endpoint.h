// Where daemons listen and what identifies the caller there. Pure reading of text and one file; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::client {

inline constexpr std::string_view kDefaultServer = "unix:/run/clusterctl/clusterctl.sock";

struct Endpoint {
  std::string socket;  // path of a Unix socket, or empty
  std::string url;     // "http://127.0.0.1:9007" without a path; "http://localhost" with a socket
  bool local = false;  // socket or loopback: never through a proxy
  std::string name;    // as shown in messages

  bool operator==(const Endpoint&) const = default;
};

// "unix:PATH", "/PATH", "http://HOST[:PORT]", "https://HOST[:PORT]", "HOST:PORT".
Result<Endpoint> parse_endpoint(std::string_view text);
// Several separated by commas or blanks; blank text is the default socket.
Result<std::vector<Endpoint>> parse_endpoints(std::string_view text);
// The bearer token in a file: one line of printable ASCII.
Result<std::string> read_token(const fs::path& path);

}  // namespace clusterctl::client
