// contiv's interface for clients and monitors that exist: its routes, its JSON, its answers (200
// with an empty body, errors as one line of text). A thin face: every request becomes what /v1
// would do, and what only /v1 can say is not said here. Off unless configured. docs/compat.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/resources.h"
#include "base/files.h"

namespace clusterctl::api::compat {

// What GET /config shows, and what POST /config may change: the user, where `set_user` is given.
// Both functions may be called from any thread.
struct Settings {
  std::function<std::string()> user;
  std::function<Status(const std::string&)> set_user;
  std::string address;  // of the TCP listener, or the path of the socket
  fs::path playbooks;
  std::string private_key;
};

// Called once while the daemon starts; the controller must outlive the router.
void add_routes(Router& router, controller::Controller& controller, Settings settings);

// "/info/nodes?x" is one of these routes' addresses, whether or not there is such a route.
bool owns(std::string_view target);

// Runs `next` for a request. One of these routes only from this machine (loopback or Unix socket);
// the token may also come as the password of Basic authentication, because that is what clients
// make of http://any:TOKEN@HOST; a problem document becomes one line of text. Other requests pass
// untouched. Any thread.
Response through(Request& request, const std::function<Response(Request&)>& next);

}  // namespace clusterctl::api::compat
