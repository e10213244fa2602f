// Running jobs: which may start, starting them, taking over those of the last daemon, and storing
// what their steppers propose.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/log.h"
#include "controller/controller.h"
#include "controller/node_change.h"
#include "controller/wishes.h"
#include "fleet/operation.h"
#include "fleet/tombstone.h"
#include "job/finish.h"
#include "job/rolling.h"
#include "job/stepper.h"
#include "plan/plan.h"

namespace clusterctl::controller {

Status Controller::start() {
  {
    MutexLock lock(mutex_);
    if (auto done = writer_.load(); !done) return done;
    if (auto done = first_start(); !done) return done;
    const auto now = state();
    for (const auto& [id, job] : now->jobs) {
      if (job->state != job::State::kRunning) continue;
      log::info("taking over job {} ({})", id, job->title);
      launch(*job);
    }
    dirty_ = true;
  }
  scheduler_ = std::jthread([this](std::stop_token stop) { schedule(stop); });
  return {};
}

Status Controller::first_start() {
  Change change;
  if (state()->fleet->cluster.id.empty()) {
    fleet::Cluster cluster;
    cluster.id = deps_.ids.node_id();
    cluster.name = deps_.settings.cluster_name;
    cluster.accept_policy = deps_.settings.accept_policy;
    change.cluster = cluster;
  }
  change.events.push_back(
      {0,
       {},
       "daemon.started",
       "",
       "",
       fmt::format("{} nodes, {} jobs", state()->fleet->nodes.size(), state()->jobs.size())});
  return commit(std::move(change));
}

void Controller::stop() {
  scheduler_.request_stop();
  changed_.notify_all();
  if (scheduler_.joinable()) scheduler_.join();
  std::map<std::string, std::jthread> steppers;
  std::vector<std::jthread> ended;
  {
    MutexLock lock(mutex_);
    steppers.swap(steppers_);
    ended.swap(ended_);
  }
  for (auto& [id, thread] : steppers) thread.request_stop();
  // Joined by their destructors: a stepper that is told to stop leaves its run behind within
  // moments.
}

void Controller::schedule(std::stop_token stop) {
  std::stop_callback wake(stop, [this] { changed_.notify_all(); });
  while (!stop.stop_requested()) {
    std::vector<std::jthread> ended;
    {
      MutexLock lock(mutex_);
      if (!dirty_ && ended_.empty() && !stop.stop_requested())
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + std::chrono::seconds(1));
      if (stop.stop_requested()) return;
      writer_.probe();
      check_limits();
      expire_secrets();
      expire_plans();
      note_overdue();
      settle_flapping();
      if (!dirty_ && ended_.empty()) continue;
      dirty_ = false;
      ended.swap(ended_);
      if (relaunch_lost()) start_failed_ = true;
      while (start_next()) {
      }
      follow_drift_policy();
      forget_old_jobs();
      if (start_failed_) {  // the store refused: try again in a moment, not in a storm
        start_failed_ = false;
        const auto until = std::chrono::steady_clock::now() + deps_.settings.store_retry;
        while (!stop.stop_requested() && std::chrono::steady_clock::now() < until)
          changed_.wait_until(mutex_, until);
        writer_.probe();
        dirty_ = true;
      }
    }
  }
}

// Starts the oldest job that nothing stands in the way of; those that were paused go before those
// that wait. False: none can start now.
bool Controller::start_next() {
  if (end_broken_chain()) return true;
  const auto now = state();
  std::vector<const job::Job*> open;
  int running = 0;
  for (const auto& [id, job] : now->jobs) {
    if (job::is_final(job->state)) continue;
    open.push_back(job.get());
    running += job->state == job::State::kRunning && !job::urgent(*job);
  }
  const bool full = running >= deps_.settings.max_parallel_runs;
  for (const job::Job* job : open) {
    const bool resumed = job->state == job::State::kPaused && !job->pause.requested;
    if (resumed && (!full || job::urgent(*job) || job->cancel_requested)) return end_pause(*job);
  }
  const auto conflicts = job::conflicts(open);
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i]->state != job::State::kQueued || conflicts[i]) continue;
    if (!full || job::urgent(*open[i])) return begin(*open[i]);
  }
  return false;
}

// The fleet may have changed since the job was accepted: it is validated again in full, and planned
// on what is true now.
bool Controller::begin(const job::Job& queued) {
  job::Job job = queued;
  Change change;
  const auto snapshot = fleet();
  auto plan = plan::make_plan(*snapshot, deps_.catalog, job.request);
  Status started;
  if (!plan) {
    started = fail(plan.error());
  } else {
    job.stages.clear();
    for (const plan::Stage& stage : plan->stages) {
      job.stages.emplace_back();
      job.stages.back().def = stage;
    }
    job.roles = plan->roles;
    keep_found(job, plan->changes);
    job.changes = plan->changes;
    job.cleanup = plan->cleanup;
    job.put_back = plan->put_back;
    job.parts = plan->parts;
    job::leave_out_passed(job);
    job.state = job::State::kRunning;
    job.started = deps_.clock.now();
    if (const auto event = job::start_event(job.kind)) {
      for (const job::NodeOutcome& n : job.nodes) {
        fleet::Node node = snapshot->nodes.at(n.node);
        started = fleet::apply_event(node, *event);
        if (!started) break;
        fleet::clear_condition(node, fleet::condition::kFailed);
        add_events(change, snapshot->nodes.at(n.node), node, job.id);
        change.nodes[n.node] = std::move(node);
      }
    }
  }
  if (!started) {
    change = Change{};
    job.reason = started.error().reason;
    job.error = started.error().line();
    end_unstarted(job, job::State::kFailed, change);
  } else {
    change.events.push_back({0, {}, "job.started", "", job.id, job.title});
  }
  ++job.resource_version;
  change.jobs[job.id] = job;
  if (auto done = commit(std::move(change)); !done) {
    log::debug("job {} cannot be started: {}", job.id, done.error().line());
    start_failed_ = true;
    return false;
  }
  if (job.state == job::State::kRunning) launch(std::move(job));
  return true;
}

// A stepper ends early when the store refuses what it proposes (a full disk). Its job goes on from
// what was stored last, as after a restart. True: there was one.
bool Controller::relaunch_lost() {
  const auto now = state();
  bool found = false;
  for (const auto& [id, job] : now->jobs) {
    if (job->state != job::State::kRunning || steppers_.count(id)) continue;
    log::debug("job {}: going on from its last stored step", id);
    launch(*job);
    found = true;
  }
  return found;
}

void Controller::launch(job::Job job) {
  const std::string id = job.id;
  job::Context context{*this,       deps_.runs, deps_.catalog,
                       deps_.clock, deps_.ids,  deps_.settings.run_defaults};
  steppers_[id] =
      std::jthread([this, id, context, job = std::move(job)](std::stop_token stop) mutable {
        job::Stepper(context, std::move(job)).run(stop);
        MutexLock lock(mutex_);
        if (const auto self = steppers_.find(id);
            self != steppers_.end()) {  // gone when the daemon stops
          ended_.push_back(std::move(self->second));
          steppers_.erase(self);
        }
        dirty_ = true;
        changed_.notify_all();
      });
}

std::set<std::string> Controller::waiting_drains() const {
  std::set<std::string> out;
  const auto now = state();
  for (const auto& [id, job] : now->jobs) {
    if (job->state != job::State::kQueued ||
        plan::availability_of(job->kind) != fleet::Availability::kDrain)
      continue;
    for (const job::NodeOutcome& n : job->nodes) out.insert(n.node);
  }
  return out;
}

Status Controller::propose(const job::Proposal& proposal) {
  MutexLock lock(mutex_);
  const auto now = state();
  if (proposal.takes_out) {
    if (auto room = job::check_room(proposal, *now->fleet, deps_.catalog, waiting_drains()); !room)
      return room;
  }
  Change change;
  job::Job job = proposal.job;
  if (const auto stored = now->jobs.find(job.id); stored != now->jobs.end()) {
    job.cancel_requested = job.cancel_requested || stored->second->cancel_requested;
    job.cancel_now = job.cancel_now || stored->second->cancel_now;
    job.pause.requested = stored->second->pause.requested && !job::is_final(job.state);
    if (job.overrun.reason.empty()) job.overrun = stored->second->overrun;
    job.resource_version = stored->second->resource_version + 1;
  }
  for (const job::NodeChange& c : proposal.nodes) {
    const auto it = now->fleet->nodes.find(c.id);
    if (it == now->fleet->nodes.end()) continue;
    fleet::Node node = it->second;
    if (auto done = apply(node, c, deps_.clock.now()); !done) {
      // Our own fault; the job must reach its end all the same.
      log::error("job {}: node {}: {}", job.id, node.name, done.error().line());
      continue;
    }
    if (c.hardware) fleet::mark_returned(*now->fleet, node, deps_.clock.now());
    settle_tombstone(*now, it->second, node, change);
    change.nodes[c.id] = std::move(node);
    if (c.wish_back) take_back_wish(*now, job, c.id, change);
  }
  recognize(*now, proposal, change);
  for (const auto& [id, node] : change.nodes) {
    if (const auto before = now->fleet->nodes.find(id); before != now->fleet->nodes.end())
      add_events(change, before->second, node, job.id);
  }
  if (job.chain.removes && job::is_final(job.state)) remove_done(*now, job, change);
  if (!proposal.event.empty())
    change.events.push_back({0, {}, proposal.event, "", job.id, proposal.message});
  // What ended badly may be gone on with, and needs its variables for that.
  if (job.state == job::State::kSucceeded) forget_job_secrets(job, change);
  const std::string end = fmt::format("job {} {}: {}", job.id, to_word(job.state),
                                      job.error.empty() ? job.title : job.error);
  const bool ended = job::is_final(job.state);
  for (job::NodeOutcome& n : job.nodes) {
    const auto changed = change.nodes.find(n.node);
    const auto stored = now->fleet->nodes.find(n.node);
    if (!ended || stored == now->fleet->nodes.end()) continue;
    n.generation = (changed == change.nodes.end() ? stored->second : changed->second).generation;
  }
  change.jobs[job.id] = std::move(job);
  auto done = commit(std::move(change));
  if (done && ended) log::info("{}", end);
  return done;
}

// A machine that was cleaned, whatever its record was called then, owes nothing any more.
void Controller::settle_tombstone(const State& now, const fleet::Node& before,
                                  const fleet::Node& after, Change& change) {
  if (!fleet::has_condition(before.status, fleet::condition::kNotCleaned) ||
      fleet::has_condition(after.status, fleet::condition::kNotCleaned))
    return;
  if (const fleet::Tombstone* t = fleet::find_tombstone(*now.fleet, after))
    change.tombstones[t->id] = std::nullopt;
}

void Controller::forget_old_jobs() {
  const auto now = state();
  std::vector<std::pair<Time, std::string>> by_end;  // a long job is no older than its end
  for (const auto& [id, job] : now->jobs) {
    if (job::is_final(job->state)) by_end.emplace_back(job->ended.value_or(job->created), id);
  }
  if (by_end.size() <= deps_.settings.keep_jobs) return;
  std::sort(by_end.begin(), by_end.end());
  std::vector<std::string> ended;
  ended.reserve(by_end.size());
  for (auto& [time, id] : by_end) ended.push_back(std::move(id));
  Change change;
  std::vector<std::string> runs;
  for (size_t i = 0; i + deps_.settings.keep_jobs < ended.size() && i < store::kMaxOperations / 2;
       ++i) {
    change.removed_jobs.insert(ended[i]);
    job::Job job = *now->jobs.at(ended[i]);
    forget_job_secrets(job, change);
    for (const job::StageStatus& stage : job.stages) {
      if (!stage.run.empty()) runs.push_back(stage.run);
    }
  }
  if (auto done = commit(std::move(change)); !done) {
    log::warn("old jobs cannot be removed: {}", done.error().line());
    return;
  }
  for (const std::string& run : runs) {
    std::error_code ec;
    fs::remove_all(deps_.runs.dir(run), ec);
  }
}

}  // namespace clusterctl::controller
