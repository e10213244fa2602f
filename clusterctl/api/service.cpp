#include "api/service.h"

#include <chrono>

#include "api/problem.h"
#include "api/target.h"
#include "base/log.h"

namespace clusterctl::api {

Response Service::handle(Request& request) const {
  const auto begin = std::chrono::steady_clock::now();
  Response response = route(request);
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const auto took = std::chrono::steady_clock::now() - begin;
  if (times_) times_->add(request, response.status, took);
  if (!reads || response.status >= 500) {
    log::info("request {}: {} {} by {} from {}: {} in {} ms", request.id, request.method,
              loggable_path(request),
              request.identity.name.empty() ? "nobody" : request.identity.name,
              request.peer.address, response.status,
              std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  }
  return response;
}

Response Service::route(Request& request) const {
  auto identity = auth_.check(request);
  if (!identity) return problem_response(identity.error());
  request.identity = std::move(*identity);
  if (auto parsed = parse_target(request); !parsed) return problem_response(parsed.error());
  return router_.handle(request);
}

}  // namespace clusterctl::api
