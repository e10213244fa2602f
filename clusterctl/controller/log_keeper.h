// Bounds the disk that logs of ended jobs take: by number, age and bytes, the oldest first. Only
// the run directories go, never the record of a job, and never anything of a job that runs. What it
// keeps can be told from the files alone, so a restart changes nothing. While the store has no
// space, one log after another makes room for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "controller/controller.h"

namespace clusterctl::controller {

struct LogLimits {
  size_t keep_jobs = 500;           // logs of so many ended jobs
  int keep_days = 90;               // 0: of any age
  uint64_t max_bytes = 4ULL << 30;  // all of them together
};

struct KeptLog {
  std::string job;
  Time ended{};
  uint64_t bytes = 0;
};

// The jobs whose logs have to go, the oldest first. The newest log goes for its age only: whoever
// made it may still want to read it. Pure.
std::vector<std::string> logs_to_drop(std::vector<KeptLog> logs, const LogLimits& limits, Time now);

// True when the runs of an ended job are no longer there. Any thread.
bool log_expired(const Controller& controller, const job::Job& job);

// A thread of its own, because removing gigabytes takes time: looks after every end of a job, and
// every ten minutes.
class LogKeeper {
 public:
  LogKeeper(const Controller& controller, LogLimits limits)
      : controller_(controller), limits_(limits) {}

  void start();
  void stop();
  // One look, in the caller's thread. Not while started.
  void sweep();

 private:
  void loop(std::stop_token stop);
  void make_room();
  std::vector<KeptLog> kept(const State& state);
  void drop(const job::Job& job);

  const Controller& controller_;
  LogLimits limits_;
  std::map<std::string, uint64_t> sizes_;  // of ended jobs, which do not change; one thread
  size_t ended_seen_ = 0;
  std::jthread thread_;
};

}  // namespace clusterctl::controller
