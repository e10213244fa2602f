#include "controller/event_log.h"

#include <algorithm>

#include "base/time.h"

namespace clusterctl::controller {

Json to_json(const Event& e) {
  Json out{{"seq", e.seq}, {"time", format_time(e.time)}, {"type", e.type}, {"message", e.message}};
  if (!e.node.empty()) out["node"] = e.node;
  if (!e.job.empty()) out["job"] = e.job;
  return out;
}

Result<Event> event_from_json(const Json& record) {
  Event e;
  const auto seq = get_int(record, "seq");
  const auto time = get_string(record, "time");
  const auto type = get_string(record, "type");
  if (!seq || !time || !type)
    return fail(Code::kInternal, "damaged", "an event record cannot be read");
  const auto parsed = parse_time(*time);
  if (!parsed) return fail(parsed.error());
  e.seq = static_cast<uint64_t>(*seq);
  e.time = *parsed;
  e.type = *type;
  e.node = get_string(record, "node").value_or("");
  e.job = get_string(record, "job").value_or("");
  e.message = get_string(record, "message").value_or("");
  return e;
}

EventLog::Page EventLog::since(uint64_t since, size_t limit) const {
  MutexLock lock(mutex_);
  Page page;
  if (events_.empty()) return page;
  page.last = events_.back().seq;
  const uint64_t oldest = events_.front().seq;
  if (since + 1 < oldest) {
    page.gap_from = since + 1;
    page.gap_to = oldest - 1;
  }
  const auto first = std::lower_bound(events_.begin(), events_.end(), since + 1,
                                      [](const Event& e, uint64_t seq) { return e.seq < seq; });
  for (auto it = first; it != events_.end() && page.events.size() < limit; ++it)
    page.events.push_back(*it);
  return page;
}

uint64_t EventLog::last() const {
  MutexLock lock(mutex_);
  return events_.empty() ? 0 : events_.back().seq;
}

uint64_t EventLog::oldest() const {
  MutexLock lock(mutex_);
  return events_.empty() ? 0 : events_.front().seq;
}

void EventLog::append(const std::vector<Event>& events) {
  std::vector<std::function<void()>> wake;
  {
    MutexLock lock(mutex_);
    events_.insert(events_.end(), events.begin(), events.end());
    while (events_.size() > kKept) events_.pop_front();
    for (const auto& [handle, function] : subscribers_) wake.push_back(function);
  }
  for (const auto& function : wake) function();
}

uint64_t EventLog::subscribe(std::function<void()> wake) {
  MutexLock lock(mutex_);
  subscribers_[next_handle_] = std::move(wake);
  return next_handle_++;
}

void EventLog::unsubscribe(uint64_t handle) {
  MutexLock lock(mutex_);
  subscribers_.erase(handle);
}

}  // namespace clusterctl::controller
