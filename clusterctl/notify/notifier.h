// Tells receivers outside what happens in the fleet. The durable queue is the fleet's own log of
// numbered events plus one cursor for each receiver, so a job only ever appends its event and never
// waits for a receiver, and a new daemon goes on where the old one stopped. Each receiver gets its
// events in order, the next one when the last is settled; a delivery whose answer was lost is
// repeated under the same id.
//
// Notifier is passive: one thread calls start() and turn() (notify_thread.h is that thread in the
// daemon); view() may be called from any thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/clock.h"
#include "notify/ledger.h"
#include "notify/receiver.h"
#include "notify/transport.h"

namespace clusterctl::notify {

struct Event {
  uint64_t seq = 0;
  Time time{};
  std::string type;
};

// Where events come from. Any thread.
class Source {
 public:
  struct Page {
    std::vector<Event> events;
    uint64_t lost_to =
        0;              // events up to this number were asked for and are no longer kept; 0: none
    uint64_t last = 0;  // the newest number there is
  };
  virtual ~Source() = default;
  virtual Page since(uint64_t seq, size_t limit) const = 0;
  // What a receiver is told: a JSON object; nullopt: no longer known.
  virtual std::optional<Json> describe(uint64_t seq) const = 0;
  // Distinguishes fleets whose event numbers are alike.
  virtual std::string fleet_id() const = 0;
};

using Steady = std::chrono::steady_clock::time_point;

struct Options {
  size_t queue = 1000;  // events that wait for one receiver; beyond, the oldest is dropped
  int max_attempts = 100;
  std::chrono::hours max_age{24};
  std::chrono::milliseconds first_delay{1'000};  // doubles with every failure
  std::chrono::milliseconds max_delay{300'000};
  std::function<Steady()> now = [] { return std::chrono::steady_clock::now(); };
  // From 0 to 1: shortens a delay by up to its half, so that daemons do not return all at once.
  std::function<double()> chance = [] { return 0.0; };
};

class Notifier {
 public:
  Notifier(Options options, std::vector<Receiver> receivers, const Source& source,
           Transport& transport, Ledger& ledger, const Clock& clock);

  // Reads the cursors. A receiver that is new begins with what happens from now on.
  Status start();
  // Takes what has ended, reads new events, sends what is due. Answers for how long nothing else is
  // to be done unless something happens.
  std::chrono::milliseconds turn(const std::vector<Outcome>& outcomes) EXCLUDES(mutex_);

  // {"receivers": [...]}, docs/rest.md. Without secrets and without the path of a URL.
  Json view() const EXCLUDES(mutex_);
  // One sentence for each receiver that does not take what it is sent.
  std::vector<Problem> problems() const EXCLUDES(mutex_);

 private:
  struct Lane {
    Receiver to;
    uint64_t read = 0;     // last event that was looked at
    uint64_t settled = 0;  // the cursor
    std::deque<Event> waiting;
    std::optional<uint64_t> ticket;  // of the post under way; its event is waiting.front()
    std::string body;                // of waiting.front(), once made
    int attempts = 0;                // of waiting.front()
    Steady due{};
    uint64_t delivered = 0, failures = 0, dropped = 0;
    std::optional<Time> last_delivered, last_failed;
    std::string last_error;  // empty: the last post succeeded
    bool drop_told = false;
    bool unsaved = false;  // something was settled since the last save
  };

  void read_events(Lane& lane) REQUIRES(mutex_);
  void take(Lane& lane, const Outcome& outcome) REQUIRES(mutex_);
  void settle(Lane& lane) REQUIRES(mutex_);
  void drop(Lane& lane, uint64_t count, std::string_view why) REQUIRES(mutex_);
  void give_up_old(Lane& lane) REQUIRES(mutex_);
  // Leaves a post under way, or settles an event of which nothing is known any more.
  void send(Lane& lane) REQUIRES(mutex_);
  Post make_post(const Lane& lane, const Event& event) const REQUIRES(mutex_);
  Json view_of(const Lane& lane) const REQUIRES(mutex_);
  void save() REQUIRES(mutex_);

  const Options options_;
  const Source& source_;
  Transport& transport_;
  Ledger& ledger_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<Lane> lanes_ GUARDED_BY(mutex_);
  Cursors saved_ GUARDED_BY(mutex_);
  uint64_t last_ticket_ GUARDED_BY(mutex_) = 0;
  bool save_failed_ GUARDED_BY(mutex_) = false;
};

// "v1=<hex>": HMAC-SHA256 of "<timestamp>.<body>".
std::string signature(std::string_view secret, std::string_view timestamp, std::string_view body);

}  // namespace clusterctl::notify
