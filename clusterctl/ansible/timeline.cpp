#include "ansible/timeline.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"

namespace clusterctl::ansible {
namespace {

constexpr size_t kMaxHosts = 20000;
constexpr size_t kMaxServices = 64;  // of one host
constexpr size_t kSlowest = 5;
constexpr size_t kMaxName = 200;

std::optional<Time> time_of(const Event& event) {
  const auto t = parse_time(event.time);
  return t ? std::optional(*t) : std::nullopt;
}

}  // namespace

void RunTimeline::feed_line(std::string_view line) {
  if (const auto event = decode_event(line)) feed(*event);
}

void RunTimeline::feed(const Event& event) {
  const auto at = time_of(event);
  ++events_;
  if (at) last_ = at;
  if (event.kind == "play") {
    play_ = truncate_utf8(event.play, kMaxName);
    play_hosts_.clear();
    for (const Json& host : event.value) {
      if (host.is_string() && play_hosts_.size() < kMaxHosts)
        play_hosts_.insert(one_line(host.get_ref<const std::string&>()));
    }
  } else if (event.kind == "task") {
    end_task(at);
    current_ = Current{play_, truncate_utf8(event.service, kMaxName),
                       truncate_utf8(event.task, kMaxName), at, play_hosts_};
  } else if (event.kind == "result") {
    feed_result(event, at);
  } else if (event.kind == "stats" || event.kind == "cancelled") {
    end_task(at);
    current_.reset();
  }
}

void RunTimeline::end_task(const std::optional<Time>& at) {
  if (!current_ || !current_->since || !at) return;
  TaskSpan span{current_->service, current_->task, (*at - *current_->since).count()};
  const auto place = std::find_if(slowest_.begin(), slowest_.end(),
                                  [&](const TaskSpan& s) { return s.ms < span.ms; });
  slowest_.insert(place, std::move(span));
  if (slowest_.size() > kSlowest) slowest_.pop_back();
}

void RunTimeline::feed_result(const Event& event, const std::optional<Time>& at) {
  if (hosts_.size() >= kMaxHosts && !hosts_.count(event.host)) return;
  auto& spans = hosts_[event.host];
  auto span = std::find_if(spans.begin(), spans.end(),
                           [&](const ServiceSpan& s) { return s.service == event.service; });
  if (span == spans.end()) {
    if (spans.size() >= kMaxServices) return;
    spans.push_back({truncate_utf8(event.service, kMaxName), {}, {}, 0, 0, 0, "ok"});
    span = spans.end() - 1;
  }
  const std::chrono::milliseconds took(std::clamp<int64_t>(event.duration_ms, 0, INT32_MAX));
  if (at && !span->started) span->started = *at - took;
  if (at) span->ended = at;
  if (event.status != "ok" && !event.ignored) span->state = event.status;
  if (!event.item.empty()) return;  // the result of the whole loop comes as well
  span->busy_ms += took.count();
  ++span->tasks;
  span->changed += event.changed;
  // A result may come after the next task was begun, where nodes go on by themselves.
  if (current_ && current_->task == truncate_utf8(event.task, kMaxName))
    current_->waiting_for.erase(event.host);
}

}  // namespace clusterctl::ansible
