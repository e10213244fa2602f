// Who may use the API. Write access to it is root on every node, so everything is refused that is
// not clearly allowed. Immutable after construction; any thread.
//
// Unix socket: the kernel says who connected; root, the daemon's own user and members of one group
// may do everything. TCP: a bearer token, the daemon's own or a named one, which may be for reading
// only; the Host header must be a name of this daemon, or the address that the
// client has reached (a web page
// that makes its own name point here is refused), and so must Origin.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/api_token.h"
#include "api/http.h"
#include "base/files.h"

namespace clusterctl::api {

struct AuthOptions {
  std::string token;  // for TCP; empty: nobody gets in by TCP
  std::vector<std::string>
      hosts;  // names and addresses, without port, besides localhost, 127.0.0.1 and [::1]
  std::optional<gid_t> group;  // whose members may use the Unix socket
  // Paths that need no token. Host and Origin are checked there too.
  std::vector<std::string> open_paths = {"/healthz", "/v1/join", "/v1/join/leave"};
  // Named tokens by id; called for each request. Without it there are none.
  std::function<std::optional<access::ApiToken>(const std::string& id)> find_token = nullptr;
  const Clock* clock = nullptr;  // for tokens that expire; must be there with find_token
};

class Auth {
 public:
  explicit Auth(AuthOptions options);

  // kUnauthenticated or kForbidden when the request must not be served.
  Result<Identity> check(const Request& request) const;

 private:
  Result<Identity> check_unix(const Peer& peer) const;
  Status check_host(const Request& request) const;
  Status check_browser(const Request& request) const;
  Result<Identity> check_token(const Request& request) const;
  Result<Identity> check_named_token(const Request& request, const std::string& id,
                                     std::string_view text) const;
  bool known_host(std::string_view authority, const Peer& peer) const;

  AuthOptions options_;
};

// The token in the file, which is made with mode 0600 if it does not exist. A file that others can
// read, or that is not the daemon's or root's, is an Error.
Result<std::string> load_or_create_token(const fs::path& path);

// nullopt: there is no such group.
std::optional<gid_t> find_group(const std::string& name);

}  // namespace clusterctl::api
