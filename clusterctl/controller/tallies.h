// What has happened since the daemon started, for /metrics: counted in the commit that makes it
// true. Any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/annotations.h"
#include "controller/change.h"

namespace clusterctl::controller {

class Tallies {
 public:
  struct Seconds {
    uint64_t count = 0;
    double sum = 0;
  };
  struct Numbers {
    std::map<std::pair<std::string, std::string>, uint64_t> ended_jobs;  // kind, state
    std::map<std::string, Seconds> job_time;  // by kind: from the start to the end
    std::map<std::pair<std::string, std::string>, uint64_t> ended_runs;  // playbook, state
  };

  // What `change` ends that had not ended in `before`.
  static Numbers of(const State& before, const Change& change);
  void add(const Numbers& numbers) EXCLUDES(mutex_);
  Numbers numbers() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Numbers numbers_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::controller
