// Who is there: knocks at every accepted node once in an interval. Several misses in a row make a
// node Disappeared, one answer makes it Discovered. When more than half of the nodes that were
// there fall silent within one interval, it is this machine that is cut off: nothing is recorded of
// them until most are back.
//
// The prober keeps no state of its own that matters: what it finds is compared with what is stored,
// so a finding that could not be stored is found again.
//
// Passive: one thread calls turn() (prober_thread.h is that thread in the daemon).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fleet/snapshot.h"
#include "monitor/dialer.h"

namespace clusterctl::monitor {

struct Finding {
  std::string node;  // id
  fleet::Presence presence = fleet::Presence::kUnknown;
  std::optional<Time> answered;  // when it answered last, as far as this prober has seen
};

// The fleet, and who writes it. Called by the prober's thread.
class Host {
 public:
  virtual ~Host() = default;
  virtual std::shared_ptr<const fleet::Snapshot> fleet() const = 0;
  virtual Status record(const std::vector<Finding>& findings) = 0;
  virtual Status isolated(std::optional<Time> since, const std::string& message) = 0;
};

using Steady = std::chrono::steady_clock::time_point;

struct Options {
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds timeout{5'000};
  int misses = 3;
  size_t parallel = 128;  // probes under way at once
  std::function<Steady()> now = [] { return std::chrono::steady_clock::now(); };
  // From 0 to 1: spreads the probes, so that they do not all go out at once.
  std::function<double()> chance = [] { return 0.5; };
};

class Prober {
 public:
  Prober(Options options, Host& host, Dialer& dialer, const Clock& clock);

  // Takes what has come, starts what is due. Answers for how long nothing else is to be done unless
  // something comes.
  std::chrono::milliseconds turn(const std::vector<Answer>& answers);

 private:
  struct Target {
    std::string addr;
    int port = 22;
    Steady due{};
    std::optional<uint64_t> probe;  // under way
    Steady deadline{};
    int misses = 0;  // in a row
    Steady first_miss{};
    std::optional<Time> answered;
  };
  using Targets = std::map<std::string, Target>;

  void read_fleet(Steady now);
  void take(const Answer& answer, Steady now);
  void give_up_late(Steady now);
  void start_due(Steady now);
  void end_probe(Targets::iterator it, bool there, Steady now);
  void forget(Targets::iterator it);
  void judge();
  bool falls_silent_together(const std::vector<std::string>& gone) const;
  bool majority_is_back() const;
  bool present(const std::string& id) const;
  std::chrono::milliseconds until_next(Steady now) const;

  const Options options_;
  Host& host_;
  Dialer& dialer_;
  const Clock& clock_;
  std::shared_ptr<const fleet::Snapshot> fleet_;  // the newest
  std::shared_ptr<const fleet::Snapshot> read_;   // of which targets_ was made
  Steady next_read_{};
  Targets targets_;                               // by node id
  std::set<std::pair<Steady, std::string>> due_;  // targets without a probe under way
  std::map<uint64_t, std::string> probes_;        // under way, oldest first: deadlines in order
  uint64_t last_probe_ = 0;
  std::set<std::string> to_judge_;  // answered, or missed often enough, since the last judgement
  bool isolated_ = false;
};

}  // namespace clusterctl::monitor
