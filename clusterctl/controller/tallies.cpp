#include "controller/tallies.h"

#include <set>

namespace clusterctl::controller {
namespace {

// The ids of its runs that have ended.
std::set<std::string> runs_behind(const job::Job* job) {
  std::set<std::string> out;
  if (!job) return out;
  for (const job::StageStatus& stage : job->stages) {
    if (!stage.run.empty() && job::is_final(stage.state)) out.insert(stage.run);
  }
  return out;
}

}  // namespace

Tallies::Numbers Tallies::of(const State& before, const Change& change) {
  Numbers out;
  for (const auto& [id, job] : change.jobs) {
    const auto known = before.jobs.find(id);
    const job::Job* old = known == before.jobs.end() ? nullptr : known->second.get();
    if (job::is_final(job.state) && !(old && job::is_final(old->state))) {
      ++out.ended_jobs[{job.kind, std::string(to_word(job.state))}];
      if (job.started && job.ended) {
        Seconds& time = out.job_time[job.kind];
        ++time.count;
        time.sum += std::chrono::duration<double>(*job.ended - *job.started).count();
      }
    }
    const std::set<std::string> behind = runs_behind(old);
    for (const job::StageStatus& stage : job.stages) {
      if (stage.run.empty() || !job::is_final(stage.state) || behind.count(stage.run)) continue;
      ++out.ended_runs[{stage.def.playbook, std::string(to_word(stage.state))}];
    }
  }
  return out;
}

void Tallies::add(const Numbers& numbers) {
  const MutexLock lock(mutex_);
  for (const auto& [key, n] : numbers.ended_jobs) numbers_.ended_jobs[key] += n;
  for (const auto& [key, n] : numbers.ended_runs) numbers_.ended_runs[key] += n;
  for (const auto& [kind, time] : numbers.job_time) {
    Seconds& sum = numbers_.job_time[kind];
    sum.count += time.count;
    sum.sum += time.sum;
  }
}

Tallies::Numbers Tallies::numbers() const {
  const MutexLock lock(mutex_);
  return numbers_;
}

}  // namespace clusterctl::controller
