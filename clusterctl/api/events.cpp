#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <memory>

#include "api/paging.h"
#include "api/resources.h"

namespace clusterctl::api {
namespace {

using controller::Controller;
using controller::EventLog;

constexpr size_t kPage = 200;
constexpr size_t kPageBytes = 64 << 10;
constexpr size_t kCached = 8;

// The events after a number as they are sent, for everybody who stands at that number. One for all
// followers; belongs to the stream thread.
class EventNews final : public Topic {
 public:
  struct Page {
    SharedText text;  // null: there is none
    uint64_t last = 0;
  };

  explicit EventNews(EventLog& log) : log_(log) {}
  ~EventNews() override { stop(); }

  void start(std::function<void()> wake) override { handle_ = log_.subscribe(std::move(wake)); }
  void stop() override {
    if (handle_ != 0) log_.unsubscribe(handle_);
    handle_ = 0;
  }

  // A page that was made before may end earlier than the events do by now: the rest is the next
  // page.
  Page after(uint64_t since) {
    for (const auto& [number, page] : cached_) {
      if (number == since) return page;
    }
    Page page = make(since);
    if (!page.text) return page;
    if (cached_.size() == kCached) cached_.pop_front();
    cached_.emplace_back(since, page);
    return page;
  }

 private:
  // Who was overtaken gets a gap message instead of a silent hole; its id is where to go on from.
  Page make(uint64_t since) const {
    const EventLog::Page page = log_.since(since, kPage);
    Page out{nullptr, since};
    std::string text;
    if (page.gap_from != 0) {
      text += sse_event(fmt::format("{}", page.gap_to), "gap",
                        dump_json({{"from", page.gap_from}, {"to", page.gap_to}}));
      out.last = page.gap_to;
    }
    for (const controller::Event& e : page.events) {
      text += sse_event(fmt::format("{}", e.seq), "event", dump_json(controller::to_json(e)));
      out.last = e.seq;
      if (text.size() >= kPageBytes) break;
    }
    if (!text.empty()) out.text = std::make_shared<const std::string>(std::move(text));
    return out;
  }

  EventLog& log_;
  uint64_t handle_ = 0;
  std::deque<std::pair<uint64_t, Page>> cached_;
};

class FleetEvents final : public StreamSource {
 public:
  FleetEvents(std::shared_ptr<EventNews> news, uint64_t since)
      : news_(std::move(news)), since_(since) {}

  StreamStep next() override {
    EventNews::Page page = news_->after(since_);
    since_ = page.last;
    return page.text ? StreamStep::data(std::move(page.text)) : StreamStep::idle(news_);
  }

 private:
  const std::shared_ptr<EventNews> news_;
  uint64_t since_;
};

Result<Response> events(Controller& c, const std::shared_ptr<EventNews>& news, const Request& r) {
  const auto follow = r.query_bool("follow");
  if (!follow) return fail(follow.error());
  // A place in the list and a place in the stream are the same number.
  if (r.query.count("since") && r.query.count("after"))
    return fail(Code::kInvalid, "bad_query", "\"since\" and \"after\" say the same",
                "give one of them");
  int64_t since = 0;
  const auto last = r.headers.get("Last-Event-ID");
  if (last && !r.query.count("since") && !r.query.count("after")) {
    std::from_chars(last->data(), last->data() + last->size(), since);
  } else {
    const auto given = r.query_int(r.query.count("after") ? "after" : "since", 0, 0, INT64_MAX);
    if (!given) return fail(given.error());
    since = *given;
  }
  if (*follow)
    return Response::sse(std::make_unique<FleetEvents>(news, static_cast<uint64_t>(since)));
  const auto asked = read_page(r, 1000, 10000);
  if (!asked) return fail(asked.error());
  const auto page = c.events().since(static_cast<uint64_t>(since), asked->limit);
  Json out{{"events", Json::array()}, {"last", page.last}};
  for (const controller::Event& e : page.events) out["events"].push_back(controller::to_json(e));
  if (!page.events.empty() && page.events.back().seq < page.last)
    out["next"] = std::to_string(page.events.back().seq);
  if (page.gap_from != 0) out["gap"] = {{"from", page.gap_from}, {"to", page.gap_to}};
  return Response::json(out);
}

}  // namespace

void add_event_routes(Router& router, Controller& c) {
  const auto news = std::make_shared<EventNews>(c.events());
  router.get(
      "/v1/events", [&c, news](const Request& r) { return events(c, news, r); },
      paged({"since", "follow"}));
}

}  // namespace clusterctl::api
