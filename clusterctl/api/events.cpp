#include <fmt/format.h>

#include <charconv>

#include "api/resources.h"

namespace clusterctl::api {
namespace {

using controller::Controller;
using controller::EventLog;

constexpr size_t kPage = 500;

// Fleet events from a number on; a follower that was overtaken gets a gap message instead of a
// silent hole.
class FleetEvents : public StreamSource {
 public:
  FleetEvents(EventLog& log, uint64_t since) : log_(log), since_(since) {}
  ~FleetEvents() override {
    if (handle_ != 0) log_.unsubscribe(handle_);
  }

  void start(std::function<void()> wake) override { handle_ = log_.subscribe(std::move(wake)); }

  StreamStep next() override {
    const EventLog::Page page = log_.since(since_, kPage);
    std::string text;
    if (page.gap_from != 0)
      text += sse_event("", "gap", dump_json({{"from", page.gap_from}, {"to", page.gap_to}}));
    for (const controller::Event& e : page.events) {
      text += sse_event(fmt::format("{}", e.seq), "event", dump_json(controller::to_json(e)));
      since_ = e.seq;
    }
    return text.empty() ? StreamStep::idle() : StreamStep::data(std::move(text));
  }

 private:
  EventLog& log_;
  uint64_t since_;
  uint64_t handle_ = 0;
};

Result<Response> events(Controller& c, const Request& r) {
  const auto follow = r.query_bool("follow");
  if (!follow) return fail(follow.error());
  int64_t since = 0;
  const auto last = r.headers.get("Last-Event-ID");
  if (last && !r.query.count("since")) {
    std::from_chars(last->data(), last->data() + last->size(), since);
  } else {
    const auto given = r.query_int("since", 0, 0, INT64_MAX);
    if (!given) return fail(given.error());
    since = *given;
  }
  if (*follow)
    return Response::sse(std::make_unique<FleetEvents>(c.events(), static_cast<uint64_t>(since)));
  const auto limit = r.query_int("limit", 1000, 1, 10000);
  if (!limit) return fail(limit.error());
  const auto page = c.events().since(static_cast<uint64_t>(since), static_cast<size_t>(*limit));
  Json out{{"events", Json::array()}, {"last", page.last}};
  for (const controller::Event& e : page.events) out["events"].push_back(controller::to_json(e));
  if (page.gap_from != 0) out["gap"] = {{"from", page.gap_from}, {"to", page.gap_to}};
  return Response::json(out);
}

}  // namespace

void add_event_routes(Router& router, Controller& c) {
  router.get("/v1/events", [&c](const Request& r) { return events(c, r); },
             {"since", "follow", "limit"});
}

}  // namespace clusterctl::api
