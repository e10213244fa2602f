#include "api/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/problem.h"
#include "base/log.h"
#include "base/strings.h"

namespace clusterctl::api {
namespace {

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

Error mistake(std::string_view what, const Route& route) {
  return Error{Code::kInternal,
               "bad_route",
               fmt::format("route {} {}: {}", route.method, route.pattern, what),
               "",
               {}};
}

Status check_query(const Request& request, const Route& route) {
  for (const auto& [name, value] : request.query) {
    if (std::find(route.query.begin(), route.query.end(), name) != route.query.end()) continue;
    const std::string near = nearest(name, route.query);
    std::string hint = near.empty() ? "known: " + join(route.query, ", ")
                                    : fmt::format("did you mean \"{}\"?", near);
    if (route.query.empty()) hint = "it takes none";
    return fail(Code::kInvalid, "unknown_key",
                fmt::format("{} {} has no query parameter \"{}\"", route.method, route.pattern,
                            truncate_utf8(one_line(name), 40)),
                std::move(hint));
  }
  return {};
}

Status check_key(const Request& request, const Route& route) {
  const bool given = route.method == "POST" && request.headers.count("Idempotency-Key") != 0;
  if (!given || route.takes_key) return {};
  return fail(
      Code::kInvalid, "idempotency_unsupported",
      fmt::format("{} {} takes no Idempotency-Key: nothing was done", route.method, route.pattern),
      "send it without; docs/rest.md says of each route what a second request does");
}

Response run(const Handler& handler, const Request& request) {
  auto result = handler(request);
  if (result) return std::move(*result);
  if (http_status(result.error().code) == 500) {
    log::error("request {}: {} {}: {}", request.id, request.method, loggable_path(request),
               result.error().line());
  }
  return problem_response(result.error());
}

}  // namespace

struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::string parameter;  // name of the child below
  std::unique_ptr<Node> child;
  std::map<std::string, Entry, std::less<>> methods;

  std::string allow() const {
    std::vector<std::string> names{"OPTIONS"};
    for (const auto& [method, entry] : methods) names.push_back(method);
    if (methods.contains("GET")) names.push_back("HEAD");
    std::sort(names.begin(), names.end());
    return join(names, ", ");
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::add(std::string method, std::string pattern, Handler handler,
                 std::vector<std::string> query, bool takes_key) {
  Status added = insert(
      {{std::move(method), std::move(pattern), std::move(query), takes_key}, std::move(handler)});
  if (!added && mistakes_) mistakes_ = std::move(added);
}

Status Router::insert(Entry entry) {
  const Route& route = entry.route;
  if (route.pattern.empty() || route.pattern.front() != '/') {
    return fail(mistake("it does not begin with a slash", route));
  }
  Node* node = root_.get();
  for (const std::string& segment : split(route.pattern.substr(1), '/', route.pattern == "/")) {
    if (segment.empty()) return fail(mistake("it has an empty segment", route));
    if (!is_parameter(segment)) {
      auto& next = node->literals[segment];
      if (!next) next = std::make_unique<Node>();
      node = next.get();
      continue;
    }
    const std::string name = segment.substr(1, segment.size() - 2);
    if (!node->child) {
      node->child = std::make_unique<Node>();
      node->parameter = name;
    }
    if (node->parameter != name) {
      return fail(mistake("another route names this parameter " + node->parameter, route));
    }
    node = node->child.get();
  }
  const std::string method = route.method;
  if (node->methods.contains(method)) return fail(mistake("it is given twice", route));
  node->methods.emplace(method, std::move(entry));
  return {};
}

// Depth-first, literals first; the depth is bounded by the patterns, not by the request.
const Router::Node* Router::find(const Node& node, Request& request, size_t depth) const {
  if (depth == request.segments.size()) return node.methods.empty() ? nullptr : &node;
  const std::string& segment = request.segments[depth];
  if (const auto it = node.literals.find(segment); it != node.literals.end()) {
    if (const Node* found = find(*it->second, request, depth + 1)) return found;
  }
  if (!node.child || segment.empty() || segment == "." || segment == "..") return nullptr;
  const Node* found = find(*node.child, request, depth + 1);
  if (found) request.params[node.parameter] = segment;
  return found;
}

Response Router::handle(Request& request) const {
  request.params.clear();
  const Node* node = find(*root_, request, 0);
  if (!node) {
    return problem_response(Error{Code::kNotFound,
                                  "no_route",
                                  "there is no such route",
                                  "GET /openapi.json lists all routes",
                                  {}});
  }
  request.route = node->methods.begin()->second.route.pattern;
  auto entry = node->methods.find(request.method);
  if (entry == node->methods.end() && request.method == "HEAD") entry = node->methods.find("GET");
  if (entry == node->methods.end()) {
    if (request.method == "OPTIONS") return Response::no_content().with("Allow", node->allow());
    return problem_response(Error{Code::kMethodNotAllowed,
                                  "method_not_allowed",
                                  fmt::format("this route does not know {}", request.method),
                                  "it knows " + node->allow(),
                                  {}})
        .with("Allow", node->allow());
  }
  if (auto query = check_query(request, entry->second.route); !query) {
    return problem_response(query.error());
  }
  if (auto key = check_key(request, entry->second.route); !key) {
    return problem_response(key.error());
  }
  return run(entry->second.handler, request);
}

std::vector<Route> Router::routes() const {
  std::vector<Route> out;
  std::vector<const Node*> open{root_.get()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const auto& [method, entry] : node->methods) out.push_back(entry.route);
    for (const auto& [name, child] : node->literals) open.push_back(child.get());
    if (node->child) open.push_back(node->child.get());
  }
  std::sort(out.begin(), out.end(), [](const Route& a, const Route& b) {
    return std::tie(a.pattern, a.method) < std::tie(b.pattern, b.method);
  });
  return out;
}

}  // namespace clusterctl::api
