// Decodes the event stream of a run (docs/run-contract.md section 4) and keeps what a job needs of
// it: per-host outcome with its root cause, facts, counts. The decoder takes untrusted lines.
// RunResult is passive and belongs to one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ansible/hints.h"
#include "base/json.h"
#include "fleet/node.h"

namespace clusterctl::ansible {

// A run has at most as many hosts as a fleet; more come from a broken or hostile writer and must
// not eat the memory.
inline constexpr size_t kMaxHosts = 20000;

// One decoded line; fields that the kind does not have are empty.
struct Event {
  std::string kind;  // "start", "play", "task", "result", "fact", "stats", "cancelled"
  uint64_t n = 0;
  std::string time, host, play, task, service, door, action, status, item, message, name;
  std::string delegate;  // the host it ran on, when that is another one
  // Of a result that is not ok, line by line: its message and its standard error, else its output.
  std::vector<std::string> message_lines, output_lines;
  bool changed = false, ignored = false, module = false;
  int64_t duration_ms = 0;
  std::optional<int64_t> rc;
  Json value;  // fact value, or the hosts of "stats" and "play"
};
Result<Event> decode_event(std::string_view line);

// Why a host failed.
struct Cause {
  std::string host, service, door, task, message;
  bool unreachable = false;   // this host, not one that a task was delegated to
  Evidence evidence;          // for Hints
  std::string delegate = "";  // where it happened, when that was another host
  std::string line() const;   // "node3: etcd: start the member: <message>"
};

struct HostCounts {
  int64_t ok = 0, changed = 0, failures = 0, unreachable = 0, skipped = 0, ignored = 0;
  int64_t module_runs = 0;
};

class RunResult {
 public:
  // Bad lines are counted, not fatal: they make complete() false only if the stats are missing.
  void feed_line(std::string_view line);
  void feed(const Event& event);

  bool complete() const { return has_stats_; }
  bool cancelled() const { return cancelled_; }
  int bad_lines() const { return bad_lines_; }
  // Counted along the way; replaced by the final stats when they come.
  const std::map<std::string, HostCounts>& hosts() const { return hosts_; }
  const std::string& current_task() const { return current_task_; }
  std::optional<Cause> cause(const std::string& host)
      const;  // nullopt: that host did not fail (or no stats and no failed result)
  // May it have been changed? A result of a door that changes things (any but check and verify), a
  // reported change, or, when the run broke off, such a task that was begun and of which no result
  // came.
  bool touched(const std::string& host) const {
    return touched_.count(host) != 0 || in_flight_.count(host) != 0;
  }
  // Did the host answer when something was last asked of it? An unreachable host counts as `ok` in
  // the stats where the playbook ignores that. nullopt: nothing was asked of it.
  std::optional<bool> answered(const std::string& host) const {
    const auto it = answered_.find(host);
    return it == answered_.end() ? std::nullopt : std::optional(it->second);
  }
  // Is the host in the final stats?
  bool in_stats(const std::string& host) const { return in_stats_.count(host) != 0; }
  const Json* fact(const std::string& host, const std::string& name) const;
  std::vector<std::string> changed_services(const std::string& host) const;

 private:
  void feed_result(const Event& event);
  void feed_stats(const Event& event);

  std::map<std::string, HostCounts> hosts_;
  std::map<std::string, Cause> first_failure_;
  std::map<std::string, std::map<std::string, Json>> facts_;
  std::map<std::string, std::set<std::string>> changed_services_;
  std::map<std::string, bool> answered_;
  std::set<std::string> touched_, in_stats_;
  std::set<std::string> play_hosts_;  // of the present play
  std::set<std::string>
      in_flight_;  // hosts without a result of the present task, when that changes things
  std::set<std::string> items_;  // hosts of which the present task reported items
  std::string current_task_;
  bool has_stats_ = false, cancelled_ = false;
  int bad_lines_ = 0;
};

// Facts into fleet values; a fact of a wrong shape or version is an Error (a missing fact must
// never count as health).
Result<fleet::ServiceStatus> decode_service_fact(const Json& fact, Time observed);
Result<fleet::Hardware> decode_hardware_fact(const Json& fact);

}  // namespace clusterctl::ansible
