#include "api/meters.h"

#include <fmt/format.h>

#include <array>

namespace clusterctl::api {
namespace {

constexpr std::array<std::string_view, 7> kMethods{"DELETE", "GET",  "HEAD", "OPTIONS",
                                                   "PATCH",  "POST", "PUT"};

std::string method_label(std::string_view method) {
  for (const std::string_view known : kMethods) {
    if (method == known) return std::string(known);
  }
  return "other";
}

}  // namespace

void RequestTimes::add(const Request& request, int status, std::chrono::duration<double> took) {
  Key key{method_label(request.method), request.route.empty() ? "none" : request.route,
          fmt::format("{}xx", status / 100)};
  const MutexLock lock(mutex_);
  times_[std::move(key)].add(took.count());
}

std::map<RequestTimes::Key, Histogram> RequestTimes::read() const {
  const MutexLock lock(mutex_);
  return times_;
}

}  // namespace clusterctl::api
