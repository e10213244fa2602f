// Finds the handler of a request in a trie of path segments. Filled once at start by one thread,
// then used by all workers at once.
//
// Unknown path: 404. Known path without that method: 405 with Allow; OPTIONS gets the same Allow
// with 204. HEAD runs the GET handler. A literal segment wins over a {parameter}. Query parameters
// that the route does not declare are 400 `unknown_key`. A POST with an
// Idempotency-Key is 400 `idempotency_unsupported` unless the route honours it: silently ignored it
// would be a promise that is not kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/http.h"

namespace clusterctl::api {

struct Route {
  std::string method;
  std::string pattern;             // "/v1/nodes/{n}"
  std::vector<std::string> query;  // names of the query parameters it knows
  bool takes_key = false;          // it honours an Idempotency-Key
  bool operator==(const Route&) const = default;
};

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  void add(std::string method, std::string pattern, Handler handler,
           std::vector<std::string> query = {}, bool takes_key = false);
  void get(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("GET", std::move(pattern), std::move(handler), std::move(query));
  }
  void post(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("POST", std::move(pattern), std::move(handler), std::move(query));
  }
  // A POST that makes a thing once, however often it comes with the same Idempotency-Key.
  void post_once(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("POST", std::move(pattern), std::move(handler), std::move(query), true);
  }
  void put(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("PUT", std::move(pattern), std::move(handler), std::move(query));
  }
  void patch(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("PATCH", std::move(pattern), std::move(handler), std::move(query));
  }
  void del(std::string pattern, Handler handler, std::vector<std::string> query = {}) {
    add("DELETE", std::move(pattern), std::move(handler), std::move(query));
  }

  // Runs the handler for request.segments and fills request.params for it. Every Error becomes a
  // problem document; one that is our own fault (500) is logged.
  Response handle(Request& request) const;

  // All routes, sorted by pattern and method.
  std::vector<Route> routes() const;
  // The first mistake made with add(): a route given twice, a malformed pattern, two names for one
  // parameter.
  const Status& mistakes() const { return mistakes_; }

 private:
  struct Node;
  struct Entry {
    Route route;
    Handler handler;
  };
  const Node* find(const Node& node, Request& request, size_t depth) const;
  Status insert(Entry entry);

  std::unique_ptr<Node> root_;
  Status mistakes_;
};

}  // namespace clusterctl::api
