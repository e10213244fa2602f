// Jobs that have not ended: cancel, pause, resume, and the end of those that pass a time limit.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "controller/controller.h"
#include "job/limits.h"
#include "job/rolling.h"

namespace clusterctl::controller {
namespace {

tl::unexpected<Error> ended(const job::Job& job) {
  return fail(Code::kConflict, "ended",
              fmt::format("job {} has ended: {}", job.id, to_word(job.state)));
}

// A gate is the moment before a planned stage; in rolling work, before a batch.
bool has_gate(const job::Job& job) {
  return std::any_of(job.stages.begin(), job.stages.end(), [&](const job::StageStatus& s) {
    return s.run.empty() && !s.puts_back() && !is_final(s.state) &&
           (s.def.batch == 0 || job::opens_batch(job, s));
  });
}

void close_pause(job::Job& job, Time now) {
  if (job.pause.since) job.pause.sum += now - *job.pause.since;
  job.pause.since.reset();
  job.pause.requested = false;
}

}  // namespace

// What puts nodes in order goes on, and so does what completes a batch, unless it has to be at
// once.
Status Controller::ask_to_end(const job::Job& job, bool also_what_puts_back) {
  for (const job::StageStatus& stage : job.stages) {
    if (stage.run.empty() || is_final(stage.state)) continue;
    const bool spared = stage.puts_back() || (!job.cancel_now && job::completes_batch(job, stage));
    if (spared && !also_what_puts_back) continue;
    if (auto asked = deps_.runs.cancel(stage.run, job.cancel_now); !asked) return asked;
  }
  return {};
}

Result<job::Job> Controller::cancel_job(std::string_view ref, bool now_wanted) {
  const auto found = find_job(ref);
  if (!found) return fail(found.error());
  MutexLock lock(mutex_);
  job::Job job = current((*found)->id).value_or(**found);
  if (job.state == job::State::kCancelled) return job;
  if (job::is_final(job.state)) return ended(job);
  if (job.cancel_requested && (job.cancel_now || !now_wanted)) {
    // `now` once more is the way out of a cleanup that hangs.
    if (auto asked = ask_to_end(job, now_wanted); !asked) return fail(asked.error());
    return job;
  }
  job.cancel_requested = true;
  job.cancel_now = job.cancel_now || now_wanted;
  ++job.resource_version;
  Change change;
  change.events.push_back(
      {0, {}, "job.stage", "", job.id, now_wanted ? "cancel now requested" : "cancel requested"});
  if (job.state == job::State::kQueued) {  // nothing was begun: it ends here
    job.reason = "cancelled";
    job.error = "cancelled before it started";
    end_unstarted(job, job::State::kCancelled, change);
  }
  close_pause(job, deps_.clock.now());
  if (job.state == job::State::kPaused) job.state = job::State::kRunning;
  change.jobs[job.id] = job;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  go_on(job);
  if (auto asked = ask_to_end(job); !asked) return fail(asked.error());
  return job;
}

Result<job::Job> Controller::pause_job(std::string_view ref) {
  const auto found = find_job(ref);
  if (!found) return fail(found.error());
  MutexLock lock(mutex_);
  job::Job job = current((*found)->id).value_or(**found);
  if (job::is_final(job.state)) return ended(job);
  if (job.state == job::State::kQueued) {
    return fail(Code::kConflict, "not_started",
                fmt::format("job {} has not started: there is nothing to pause", job.id),
                fmt::format("clusterctl job cancel {}", job.id));
  }
  if (job.pause.requested) return job;
  if (job.cancel_requested) {
    return fail(Code::kConflict, "cancelling", fmt::format("job {} is being cancelled", job.id));
  }
  if (!has_gate(job)) {
    const bool rolling = std::any_of(job.stages.begin(), job.stages.end(),
                                     [](const job::StageStatus& s) { return s.def.batch > 0; });
    return fail(Code::kConflict, "no_gate",
                fmt::format("job {} is in its last {}: it ends before it could pause", job.id,
                            rolling ? "batch" : "stage"),
                fmt::format("clusterctl job wait {0}, or clusterctl job cancel {0}", job.id));
  }
  job.pause.requested = true;
  ++job.resource_version;
  Change change;
  change.events.push_back({0, {}, "job.paused", "", job.id, "pause requested"});
  change.jobs[job.id] = job;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return job;
}

Result<job::Job> Controller::resume_job(std::string_view ref) {
  const auto found = find_job(ref);
  if (!found) return fail(found.error());
  MutexLock lock(mutex_);
  job::Job job = current((*found)->id).value_or(**found);
  if (job.state == job::State::kPaused && !job.pause.requested) return job;
  if (!job.pause.requested) {
    return fail(Code::kConflict, "not_paused",
                fmt::format("job {} is not paused: it is {}", job.id, to_word(job.state)));
  }
  job.pause.requested = false;
  ++job.resource_version;
  Change change;
  change.events.push_back({0, {}, "job.resumed", "", job.id, "resume requested"});
  change.jobs[job.id] = job;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return job;
}

// There is a place for a job that was paused.
bool Controller::end_pause(const job::Job& paused) {
  job::Job job = paused;
  close_pause(job, deps_.clock.now());
  job.state = job::State::kRunning;
  ++job.resource_version;
  Change change;
  change.events.push_back({0, {}, "job.resumed", "", job.id, job.title});
  change.jobs[job.id] = job;
  if (auto done = commit(std::move(change)); !done) {
    log::error("job {} cannot be resumed: {}", job.id, done.error().line());
    start_failed_ = true;
    return false;
  }
  go_on(job);
  return true;
}

// A stepper that is just pausing is waited for: the scheduler starts the next one after it.
void Controller::go_on(const job::Job& job) {
  if (job.state == job::State::kRunning && !steppers_.count(job.id)) launch(job);
}

// First at the next task, after a while at once.
void Controller::check_limits() {
  const auto now = deps_.clock.now();
  const auto jobs = state();
  for (const auto& [id, stored] : jobs->jobs) {
    if (stored->state != job::State::kRunning) continue;
    if (!stored->request.timeout && !stored->request.silence_timeout) continue;
    job::Job job = *stored;
    if (job.overrun.reason.empty()) {
      const job::StageStatus* stage = job::limited_stage(job);
      const auto passed =
          job::overrun(job, now, stage ? deps_.runs.last_output(stage->run) : std::nullopt);
      if (!passed) continue;
      job.overrun = *passed;
      job.cancel_requested = true;
    } else if (!job.cancel_now && now - job.overrun.at.value_or(now) >= job::kOverrunGrace) {
      job.cancel_now = true;
    } else {
      continue;
    }
    ++job.resource_version;
    Change change;
    change.events.push_back({0, {}, "job.stage", "", id, job.overrun.error});
    change.jobs[id] = job;
    Status done = commit(std::move(change));
    if (done) done = ask_to_end(job);
    if (!done) log::warn("job {}: {}", id, done.error().line());
  }
}

}  // namespace clusterctl::controller
