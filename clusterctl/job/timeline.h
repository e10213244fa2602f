// What a job did and does, second by second: stages with durations, a timeline per node, the
// present task, and for how long nothing was heard. Made on demand out of the run directories,
// nothing of it is stored. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ansible/timeline.h"
#include "base/annotations.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "job/job.h"

namespace clusterctl::job {

// The timelines of the runs that were asked for lately; each call reads only what is new. Reading
// stops after a while, and the next call goes on from there.
class Timelines {
 public:
  using RunDirs = std::function<fs::path(const std::string& run)>;
  static constexpr std::chrono::milliseconds kPatience{600};

  Timelines(RunDirs dirs, const Clock& clock) : dirs_(std::move(dirs)), clock_(clock) {}

  // docs/rest.md, Timeline.
  Json of(const Job& job);

 private:
  struct Entry {
    ansible::RunTimeline timeline;
    uint64_t offset = 0;  // of the first byte that was not read
    uint64_t used = 0;
    bool complete = false;  // everything that was there has been read
  };

  Entry& read(const std::string& run, std::chrono::steady_clock::time_point until) REQUIRES(mutex_);
  Json stage(const StageStatus& stage, const Job& job, const Entry& entry) const;
  std::optional<Time> last_sign(const StageStatus& stage) const;

  RunDirs dirs_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
  uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace clusterctl::job
