// Where the time of a run went, out of its events: per node and service, the slowest tasks, and
// what is being done right now. Passive and bounded; one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ansible/events.h"
#include "base/clock.h"

namespace clusterctl::ansible {

// What one service meant for one node. `service` is "" for the playbook's own tasks.
struct ServiceSpan {
  std::string service;
  std::optional<Time> started, ended;  // begin of its first, end of its last task there
  int64_t busy_ms = 0;                 // sum of its tasks: waiting for other nodes does not count
  int tasks = 0, changed = 0;
  std::string state = "ok";  // "failed", "unreachable"
};

struct TaskSpan {
  std::string service, task;
  int64_t ms = 0;
};

class RunTimeline {
 public:
  // What is no event is passed over.
  void feed_line(std::string_view line);
  void feed(const Event& event);

  const std::map<std::string, std::vector<ServiceSpan>>& hosts() const { return hosts_; }
  // At most five, the longest first.
  const std::vector<TaskSpan>& slowest() const { return slowest_; }
  uint64_t events() const { return events_; }
  std::optional<Time> last() const { return last_; }

  // The task that was begun last; nothing before the first and after the final statistics.
  struct Current {
    std::string play, service, task;
    std::optional<Time> since;
    std::set<std::string> waiting_for;  // hosts of the play without a result of it
  };
  const std::optional<Current>& current() const { return current_; }

 private:
  void end_task(const std::optional<Time>& at);
  void feed_result(const Event& event, const std::optional<Time>& at);

  std::map<std::string, std::vector<ServiceSpan>> hosts_;
  std::vector<TaskSpan> slowest_;
  std::optional<Current> current_;
  std::string play_;
  std::set<std::string> play_hosts_;
  std::optional<Time> last_;
  uint64_t events_ = 0;
};

}  // namespace clusterctl::ansible
