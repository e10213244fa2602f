#include <fmt/format.h>

#include "base/time_json.h"
#include "notify/notifier.h"

namespace clusterctl::notify {
namespace {}  // namespace

Json Notifier::view() const {
  const MutexLock lock(mutex_);
  Json out{{"receivers", Json::array()}};
  for (const Lane& lane : lanes_) out["receivers"].push_back(view_of(lane));
  return out;
}

Json Notifier::view_of(const Lane& lane) const {
  const char* state = lane.ticket ? "sending" : lane.waiting.empty() ? "idle" : "waiting";
  return {{"name", lane.to.name},
          {"url", origin_of(lane.to.url)},
          {"events", lane.to.events},
          {"state", state},
          {"pending", lane.waiting.size()},
          {"attempts", lane.attempts},
          {"delivered", lane.delivered},
          {"failures", lane.failures},
          {"dropped", lane.dropped},
          {"cursor", lane.settled},
          {"last_delivered", time_or_null(lane.last_delivered)},
          {"last_failed", time_or_null(lane.last_failed)},
          {"error", lane.last_error}};
}

std::vector<Problem> Notifier::problems() const {
  const MutexLock lock(mutex_);
  std::vector<Problem> out;
  for (const Lane& lane : lanes_) {
    if (lane.last_error.empty()) continue;
    out.push_back({"notification_failing",
                   fmt::format("notifications to {} wait ({}): {}", lane.to.name,
                               lane.waiting.size(), lane.last_error),
                   fmt::format("look at {}, and at GET /v1/notifications", origin_of(lane.to.url)),
                   ""});
  }
  return out;
}

}  // namespace clusterctl::notify
