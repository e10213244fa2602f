// Fleet events: numbered in the commit that causes them, kept for a while, followed by any number
// of readers. Safe from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/clock.h"
#include "base/json.h"

namespace clusterctl::controller {

struct Event {
  uint64_t seq = 0;
  Time time{};
  std::string type;  // docs/rest.md, Event
  std::string node;  // name, or empty
  std::string job;
  std::string message;
};
Json to_json(const Event& event);
Result<Event> event_from_json(const Json& record);

class EventLog {
 public:
  static constexpr size_t kKept = 10000;

  struct Page {
    std::vector<Event> events;
    uint64_t gap_from = 0,
             gap_to = 0;  // events the reader asked for that are no longer kept; 0: none
    uint64_t last = 0;    // the newest number there is
  };
  // Events after `since` (exclusive), at most `limit`.
  Page since(uint64_t since, size_t limit) const EXCLUDES(mutex_);
  uint64_t last() const EXCLUDES(mutex_);

  // Appends events already numbered; tells what fell out (their numbers), so that the caller
  // removes them from the store.
  void append(const std::vector<Event>& events) EXCLUDES(mutex_);
  uint64_t oldest() const EXCLUDES(mutex_);

  // Called after every append, in the appending thread; must be quick. Returns a handle for
  // unsubscribe.
  uint64_t subscribe(std::function<void()> wake) EXCLUDES(mutex_);
  void unsubscribe(uint64_t handle) EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::function<void()>> subscribers_ GUARDED_BY(mutex_);
  uint64_t next_handle_ GUARDED_BY(mutex_) = 1;
};

}  // namespace clusterctl::controller
