#include "notify/notifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/log.h"
#include "base/strings.h"

namespace clusterctl::notify {
namespace {

using std::chrono::milliseconds;

constexpr size_t kPage = 500;
constexpr uint64_t kUnsavedSkips = 500;  // events that nobody wants, read since the last save
constexpr milliseconds kIdle{3'600'000};

milliseconds delay_after(int attempts, const Options& o) {
  milliseconds delay = o.first_delay;
  for (int i = 1; i < attempts && delay < o.max_delay; ++i) delay *= 2;
  delay = std::min(delay, o.max_delay);
  const double shortened = static_cast<double>(delay.count()) * (1.0 - 0.5 * o.chance());
  return milliseconds(static_cast<int64_t>(shortened));
}

}  // namespace

std::string signature(std::string_view secret, std::string_view timestamp, std::string_view body) {
  return "v1=" + hmac_sha256_hex(secret, fmt::format("{}.{}", timestamp, body));
}

Notifier::Notifier(Options options, std::vector<Receiver> receivers, const Source& source,
                   Transport& transport, Ledger& ledger, const Clock& clock)
    : options_(std::move(options)),
      source_(source),
      transport_(transport),
      ledger_(ledger),
      clock_(clock) {
  const MutexLock lock(mutex_);
  for (Receiver& r : receivers) {
    lanes_.emplace_back();
    lanes_.back().to = std::move(r);
  }
}

Status Notifier::start() {
  auto cursors = ledger_.load();
  if (!cursors) return fail(cursors.error());
  const MutexLock lock(mutex_);
  const uint64_t last = source_.since(UINT64_MAX - 1, 1).last;
  for (Lane& lane : lanes_) {
    const auto known = cursors->find(lane.to.name);
    // A store from a backup may be behind the cursor.
    lane.settled = known == cursors->end() ? last : std::min(known->second, last);
    lane.read = lane.settled;
  }
  save();
  return {};
}

milliseconds Notifier::turn(const std::vector<Outcome>& outcomes) {
  const MutexLock lock(mutex_);
  for (const Outcome& outcome : outcomes) {
    for (Lane& lane : lanes_) {
      if (lane.ticket == outcome.ticket) take(lane, outcome);
    }
  }
  milliseconds wait = kIdle;
  for (Lane& lane : lanes_) {
    read_events(lane);
    if (lane.ticket) continue;
    give_up_old(lane);
    const Steady now = options_.now();
    while (!lane.ticket && !lane.waiting.empty() && lane.due <= now) send(lane);
    if (!lane.ticket && !lane.waiting.empty())
      wait = std::min(wait, std::chrono::ceil<milliseconds>(lane.due - now));
  }
  save();
  return wait;
}

void Notifier::read_events(Lane& lane) {
  while (true) {
    const Source::Page page = source_.since(lane.read, kPage);
    if (page.lost_to > lane.read) {
      drop(lane, page.lost_to - lane.read, "are no longer kept");
      lane.read = page.lost_to;
    }
    for (const Event& event : page.events) {
      lane.read = event.seq;
      if (!lane.to.events.count(event.type)) continue;
      lane.waiting.push_back(event);
      if (lane.waiting.size() <= options_.queue) continue;
      // The first may be under way: then the second is the oldest that can still be left out.
      const bool busy = lane.ticket && lane.waiting.size() > 1;
      lane.waiting.erase(lane.waiting.begin() + (busy ? 1 : 0));
      if (!busy) lane.body.clear();
      drop(lane, 1, "did not fit into the queue");
    }
    if (page.events.size() < kPage) break;
  }
  if (lane.waiting.empty()) lane.settled = lane.read;
}

void Notifier::take(Lane& lane, const Outcome& outcome) {
  lane.ticket.reset();
  if (outcome.delivered()) {
    if (!lane.last_error.empty()) log::info("notifications: {} takes them again", lane.to.name);
    ++lane.delivered;
    lane.last_delivered = clock_.now();
    lane.last_error.clear();
    lane.drop_told = false;
    return settle(lane);
  }
  const std::string error =
      outcome.status != 0 ? fmt::format("answered {}", outcome.status) : one_line(outcome.error);
  if (lane.last_error.empty())
    log::warn("notifications: {} does not take them: {}; trying again", lane.to.name, error);
  lane.last_error = error;
  lane.last_failed = clock_.now();
  ++lane.failures;
  if (lane.attempts >= options_.max_attempts) {
    drop(lane, 1, fmt::format("were tried {} times", lane.attempts));
    return settle(lane);
  }
  lane.due = options_.now() + delay_after(lane.attempts, options_);
}

// The first event is done with, one way or the other.
void Notifier::settle(Lane& lane) {
  lane.settled = lane.waiting.front().seq;
  lane.waiting.pop_front();
  lane.body.clear();
  lane.attempts = 0;
  lane.due = {};
  lane.unsaved = true;
}

// One warning until something is delivered again.
void Notifier::drop(Lane& lane, uint64_t count, std::string_view why) {
  lane.dropped += count;
  lane.unsaved = true;
  if (lane.drop_told) return;
  lane.drop_told = true;
  log::warn("notifications: {} misses events that {}", lane.to.name, why);
}

void Notifier::give_up_old(Lane& lane) {
  const Time limit = clock_.now() - options_.max_age;
  while (!lane.waiting.empty() && lane.waiting.front().time < limit) {
    const auto due = lane.due;
    drop(lane, 1, "are too old");
    settle(lane);
    lane.due = due;
  }
}

void Notifier::send(Lane& lane) {
  const Event& event = lane.waiting.front();
  if (lane.body.empty()) {
    const auto told = source_.describe(event.seq);
    if (!told) {
      drop(lane, 1, "are no longer kept");
      return settle(lane);
    }
    lane.body = dump_json(*told);
  }
  ++lane.attempts;
  lane.ticket = ++last_ticket_;
  transport_.start(make_post(lane, event));
}

Post Notifier::make_post(const Lane& lane, const Event& event) const {
  Post post;
  post.ticket = *lane.ticket;
  post.url = lane.to.url;
  post.ca_file = lane.to.ca_file;
  post.proxy = lane.to.proxy;
  post.body = lane.body;
  // The same after a restart, so that a receiver can tell a repetition.
  const std::string id =
      sha256_hex(fmt::format("{}/{}/{}", source_.fleet_id(), lane.to.name, event.seq));
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(clock_.now()).time_since_epoch().count();
  const std::string timestamp = std::to_string(seconds);
  post.headers = {"Content-Type: application/json",
                  "Clusterctl-Event: " + event.type,
                  "Clusterctl-Delivery: " + id.substr(0, 32),
                  fmt::format("Clusterctl-Attempt: {}", lane.attempts),
                  "Clusterctl-Timestamp: " + timestamp,
                  "Clusterctl-Signature: " + signature(lane.to.secret, timestamp, post.body)};
  return post;
}

void Notifier::save() {
  Cursors now;
  bool worth = false;
  for (Lane& lane : lanes_) {
    now[lane.to.name] = lane.settled;
    const auto old = saved_.find(lane.to.name);
    worth =
        worth || lane.unsaved || old == saved_.end() || lane.settled > old->second + kUnsavedSkips;
    lane.unsaved = false;
  }
  if (!worth || now == saved_) return;
  if (auto done = ledger_.save(now); !done) {
    if (!save_failed_)
      log::warn("notifications: {}; deliveries may be repeated after a restart",
                done.error().line());
    save_failed_ = true;
    return;
  }
  save_failed_ = false;
  saved_ = std::move(now);
}

}  // namespace clusterctl::notify
