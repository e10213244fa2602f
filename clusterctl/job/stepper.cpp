#include "job/stepper.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "fleet/conditions.h"
#include "job/evaluate.h"
#include "job/fence.h"
#include "job/finish.h"
#include "job/identity.h"
#include "job/own_host.h"
#include "job/rolling.h"
#include "job/run_input.h"
#include "job/undo.h"
#include "run/output_log.h"

namespace clusterctl::job {
namespace {

// Stages that leave the nodes alone: they only look, or only speak to the scheduler, which the undo
// ledger takes care of. Their failure needs no cleanup.
bool leaves_nodes_alone(const plan::Stage& stage) {
  return stage.name == "check" || stage.name == "observe" || stage.name == "verify" ||
         stage.name == "show" || !stage.availability.empty() || stage.in_service.has_value();
}

// What the rules for majorities are asked about: work on the nodes, and nodes that leave service.
bool is_a_change(const Job& job, const plan::Stage& stage) {
  const bool leaves = job.kind == "maintenance-enter" && stage.name != "observe";
  return leaves || !leaves_nodes_alone(stage);
}

// Which nodes a playbook has changed cannot be told: it went through tasks, and not one event of
// them came, or some could not be kept.
bool says_too_little(const ansible::RunResult& result, const run::RunState& state) {
  if (result.complete() || !state.exit) return false;
  if (state.exit->events_lost) return true;
  constexpr int kFailedHosts = 2, kFailedPlay = 8, kBits = 16;  // of ansible-playbook's exit code
  const int code = state.exit->code;
  const bool ran = state.exit->signal == 0 && code < kBits &&
                   (code == 0 || (code & (kFailedHosts | kFailedPlay)) != 0);
  return ran && result.hosts().empty();
}

}  // namespace

void Stepper::run(std::stop_token stop) {
  for (;;) {
    if (!advance_batches()) return;
    const auto next = std::find_if(job_.stages.begin(), job_.stages.end(),
                                   [](const StageStatus& s) { return !is_final(s.state); });
    if (next == job_.stages.end()) {
      if (auto undo = undo_stage(job_, *c_.host.fleet(), c_.catalog)) {
        job_.stages.push_back(std::move(*undo));
        continue;
      }
      const auto more = closing_stages(job_, *c_.host.fleet());
      if (more.empty()) return finish();
      job_.stages.insert(job_.stages.end(), more.begin(), more.end());
      continue;
    }
    if (step(*next, stop) == Next::kDetached) return;
  }
}

// Between batches: those that are over put their nodes back into service, and the next one has to
// pass the gate. False: a step could not be stored.
bool Stepper::advance_batches() {
  auto done = finish_batches(job_, *c_.host.fleet(), c_.catalog);
  if (!done.empty() && !propose(std::move(done), "job.stage", tally(job_))) return false;
  const auto next = std::find_if(job_.stages.begin(), job_.stages.end(),
                                 [](const StageStatus& s) { return !is_final(s.state); });
  if (next == job_.stages.end() || !opens_batch(job_, *next)) return true;
  if (auto stop = pass_gate(job_, *next, *c_.host.fleet(), c_.catalog, c_.host.waiting_drains())) {
    give_up(std::move(stop->reason), std::move(stop->error));
    job_.hint = std::move(stop->hint);
  }
  return true;
}

Stepper::Next Stepper::step(StageStatus& stage, std::stop_token stop) {
  if (stage.run.empty()) {
    if (stop.stop_requested()) return Next::kDetached;
    if (cancel_reaches(stage)) {
      give_up_cancelled();
      return Next::kGoOn;
    }
    // Rolling work is paused between batches: no node is left as it is in the middle of one.
    const bool gate = stage.def.batch == 0 || opens_batch(job_, stage);
    if (!stage.puts_back() && gate && pause_wanted()) return pause(stage);
    if (auto stop = leave_out_doubtful(job_, stage, *c_.host.fleet())) {
      give_up(stop->code, stop->message);
      job_.hint = stop->hint;
      return Next::kGoOn;
    }
    choose_targets(stage);
    if (stage.nodes.empty()) {
      stage.state = StageState::kSkipped;
      return Next::kGoOn;
    }
    if (const auto refused = take_out(stage)) return *refused;
    if (prepare(stage) == Next::kDetached) return Next::kDetached;
    if (is_final(stage.state)) return Next::kGoOn;
  }
  const run::RunState state = c_.runs.look(stage.run);
  // A run that had begun and whose folder is gone is not begun again: `follow` ends what is left.
  const bool begun = stage.state == StageState::kRunning;
  if (!begun && (state.phase == run::Phase::kPrepared || state.phase == run::Phase::kUnknown)) {
    if (auto started = c_.runs.start(stage.run); !started) {
      stage.state = StageState::kFailed;
      give_up("run_failed", started.error().line());
      return Next::kGoOn;
    }
  }
  if (stage.state == StageState::kPrepared) {
    stage.state = StageState::kRunning;
    stage.started = c_.clock.now();
    const std::string message = fmt::format("{} on {} {}", stage.def.name, stage.nodes.size(),
                                            stage.nodes.size() == 1 ? "node" : "nodes");
    if (!propose({}, "job.stage", message)) return Next::kDetached;
  }
  if (cancel_reaches(stage)) (void)c_.runs.cancel(stage.run, job_.cancel_now);
  return follow(stage, stop);
}

// The thread ends here; the controller starts another one when the job is resumed.
Stepper::Next Stepper::pause(const StageStatus& stage) {
  job_.state = State::kPaused;
  job_.pause.since = c_.clock.now();
  propose({}, "job.paused", fmt::format("before {}", stage.def.name));
  return Next::kDetached;
}

Stepper::Next Stepper::prepare(StageStatus& stage) {
  stage.run = c_.ids.ulid();
  stage.fences = fence_runs(c_, job_, stage);
  note_rendered(job_, stage, *c_.host.fleet(), c_.catalog);
  auto input = make_run_input(c_, job_, stage, stage.run);
  Status prepared;
  if (!input) {
    prepared = fail(input.error());
  } else {
    run::RunSpec spec;
    spec.id = stage.run;
    spec.job = job_.id;
    spec.stage = stage.def.name;
    spec.playbook = stage.def.playbook;
    spec.secret_values = input->secret_values;
    auto files = ansible::render(*input);
    if (files) {
      spec.files = std::move(*files);
      prepared = c_.runs.prepare(spec);
    } else {
      prepared = fail(files.error());
    }
  }
  if (!prepared) {
    stage.state = StageState::kFailed;
    give_up("run_failed", prepared.error().line());
    return Next::kGoOn;
  }
  stage.state = StageState::kPrepared;
  const auto run_on = [&](const std::string& id) {
    if (NodeOutcome* n = job_.outcome(id); n && n->state == OutcomeState::kPending)
      n->state = OutcomeState::kRunning;
  };
  for (const std::string& id : stage.nodes) run_on(id);
  for (const std::string& id : stage.def.about) run_on(id);
  record_changes(job_, stage, *c_.host.fleet());
  return propose({}) ? Next::kGoOn : Next::kDetached;
}

// The nodes of a batch leave service before anything is done there, in a commit of its own that
// fails when others have used up the budget since the gate. Nothing: they have left.
std::optional<Stepper::Next> Stepper::take_out(const StageStatus& stage) {
  Proposal out{job_, {}, "", "", true};
  out.nodes = begin_nodes(out.job, stage, *c_.host.fleet(), c_.clock.now());
  if (out.nodes.empty()) return std::nullopt;
  const auto done = c_.host.propose(out);
  if (done) {
    job_.nodes = std::move(out.job.nodes);
    return std::nullopt;
  }
  if (done.error().reason != "budget") {
    log::debug("job {}: its step cannot be stored: {}", job_.id, done.error().line());
    return Next::kDetached;
  }
  if (opens_batch(job_, stage)) return Next::kGoOn;  // the gate decides on what is true now
  give_up("budget", done.error().message);
  job_.hint = done.error().hint;
  return Next::kGoOn;
}

Stepper::Next Stepper::follow(StageStatus& stage, std::stop_token stop) {
  ansible::RunResult result;
  const run::RunState state =
      c_.runs.follow(stage.run, stop, [&](std::string_view line) { result.feed_line(line); });
  if (state.phase != run::Phase::kFinished && state.phase != run::Phase::kInterrupted)
    return Next::kDetached;
  if (!conclude(stage, state, result) && !stage.closing) skip_planned();
  return Next::kGoOn;
}

bool Stepper::conclude(StageStatus& stage, const run::RunState& state,
                       const ansible::RunResult& result) {
  const Time now = c_.clock.now();
  const auto fleet = c_.host.fleet();
  StageOutcome outcome =
      evaluate(stage, *fleet, result, state, run::output_tail(c_.runs.dir(stage.run)), now,
               c_.defaults.hints.get());
  refuse_own_host(job_, stage, *fleet, outcome);
  stage.state = outcome.state;
  stage.ended = now;

  std::vector<std::string> touched;
  if (!leaves_nodes_alone(stage.def)) {
    const bool unknown = outcome.state == StageState::kInterrupted || result.bad_lines() > 0 ||
                         says_too_little(result, state);
    for (const std::string& id : stage.nodes) {
      const auto node = fleet->nodes.find(id);
      if (unknown || (node != fleet->nodes.end() && result.touched(node->second.name)))
        touched.push_back(id);
    }
  }
  record_outcome(job_, stage, outcome, touched);
  note_fences(stage, result.complete(), outcome);
  settle_changes(job_, stage, outcome);
  if (auto known_hosts = c_.runs.read_known_hosts(stage.run)) {
    for (auto& [id, key] : ansible::learnt_host_keys(*known_hosts)) {
      for (NodeChange& change : outcome.observations) {
        if (change.id == id) change.host_key = key;
      }
    }
  }
  const bool was_running = job_.reason.empty();
  if (was_running && stops_job(job_, stage, outcome)) {
    if (job_.reason == "cancelled") name_overrun();
    log::info("job {}: {}", job_.id, job_.error);
  }
  propose(std::move(outcome.observations), "job.stage",
          fmt::format("{} {}", stage.def.name, to_word(stage.state)));
  if (auto scrubbed = c_.runs.scrub(stage.run); !scrubbed) log::warn("{}", scrubbed.error().line());
  if (job_.reason.empty()) check_quorum(stage);
  if (job_.reason.empty()) check_returned(stage);
  return job_.reason.empty();
}

// Failed nodes take no further part, except in the stages that clean them up or only look.
void Stepper::choose_targets(StageStatus& stage) const {
  stage.nodes.clear();
  for (const std::string& id : stage.def.nodes) {
    const NodeOutcome* n = job_.outcome(id);
    const bool out =
        n && (n->state == OutcomeState::kFailed || n->state == OutcomeState::kCancelled);
    if (!out || stage.closing) stage.nodes.push_back(id);
  }
}

// After an observation and before the first change: the same rules as at acceptance, on what was
// just seen.
void Stepper::check_quorum(const StageStatus& stage) {
  if (stage.def.name != "observe" || stage.closing) return;
  const bool changes_follow = std::any_of(
      job_.stages.begin(), job_.stages.end(),
      [&](const StageStatus& s) { return !is_final(s.state) && is_a_change(job_, s.def); });
  if (!changes_follow) return;
  plan::Plan plan = job_.as_plan();  // of rolling work: what is still to be done of it
  std::erase_if(plan.targets, [&](const std::string& id) {
    const NodeOutcome* n = job_.outcome(id);
    return stage.def.batch > 0 && n && n->state != OutcomeState::kPending &&
           n->state != OutcomeState::kRunning;
  });
  if (auto ok = plan::recheck_quorum(*c_.host.fleet(), c_.catalog, job_.request, plan); !ok) {
    const bool changed = std::any_of(job_.nodes.begin(), job_.nodes.end(),
                                     [](const NodeOutcome& n) { return n.touched; });
    give_up("quorum_lost", ok.error().message + (changed ? "" : "; nothing was changed"));
    job_.hint = ok.error().hint;
  }
}

// The check has recognised a machine that still owes a cleanup, and none is planned for it.
void Stepper::check_returned(const StageStatus& stage) {
  if (stage.def.name != "check") return;
  const auto fleet = c_.host.fleet();
  for (const std::string& id : stage.nodes) {
    const auto node = fleet->nodes.find(id);
    const bool joins = job_.part_of(id) == "commission" && node != fleet->nodes.end();
    const fleet::Condition* owed =
        joins ? fleet::find_condition(node->second.status, fleet::condition::kNotCleaned) : nullptr;
    const bool cleaned =
        std::any_of(job_.stages.begin(), job_.stages.end(), [&](const StageStatus& s) {
          return s.def.name == "cleanup" && !s.closing &&
                 std::find(s.def.nodes.begin(), s.def.nodes.end(), id) != s.def.nodes.end();
        });
    const auto passed = job_.continuation.passed.find(id);
    if (!owed || cleaned || passed != job_.continuation.passed.end()) continue;
    give_up("not_cleaned",
            fmt::format("{}: {}; nothing was changed", node->second.name, owed->reason));
    job_.hint = "the same command again cleans it first";
    return;
  }
}

void Stepper::skip_planned() {
  for (StageStatus& s : job_.stages) {
    if (s.run.empty() && !is_final(s.state)) s.state = StageState::kSkipped;
  }
}

void Stepper::give_up_cancelled() {
  give_up("cancelled", "cancelled on request");
  name_overrun();
}

// A cancel for a time limit is a failure, and says which limit it was.
void Stepper::name_overrun() {
  const auto now = c_.host.current(job_.id);
  if (now) job_.overrun = now->overrun;
  if (job_.overrun.reason.empty()) return;
  job_.reason = job_.overrun.reason;
  job_.error = job_.overrun.error;
  for (NodeOutcome& n : job_.nodes) {
    if (n.state == OutcomeState::kCancelled && n.task.empty()) n.message = job_.error;
  }
}

void Stepper::give_up(std::string reason, std::string error) {
  if (job_.reason.empty()) {
    job_.reason = std::move(reason);
    job_.error = std::move(error);
  }
  skip_planned();
}

// What puts nodes in order is not reached by it, nor is what completes a batch, unless it shall be
// at once.
bool Stepper::cancel_reaches(const StageStatus& stage) {
  if (stage.puts_back() || !cancel_wanted()) return false;
  return job_.cancel_now || !completes_batch(job_, stage);
}

bool Stepper::cancel_wanted() {
  const auto now = c_.host.current(job_.id);
  if (now && now->cancel_requested) {
    job_.cancel_requested = true;
    job_.cancel_now = now->cancel_now;
  }
  return job_.cancel_requested;
}

// Not in a job that is at its end: what remains only says so.
bool Stepper::pause_wanted() const {
  const auto now = c_.host.current(job_.id);
  return job_.reason.empty() && now && now->pause.requested;
}

void Stepper::finish() {
  const bool broke_off = job_.reason == "interrupted" || !job_.overrun.reason.empty();
  if (broke_off && job_.hint.empty())
    job_.hint = fmt::format("clusterctl job resume {} goes on from where it stopped", job_.id);
  auto changes = finish_job(job_, *c_.host.fleet(), c_.catalog, c_.clock.now());
  propose(std::move(changes), "job.ended",
          job_.error.empty() ? std::string(to_word(job_.state)) : job_.error);
}

bool Stepper::propose(std::vector<NodeChange> nodes, std::string event, std::string message) {
  const auto done = c_.host.propose(
      Proposal{job_, std::move(nodes), std::move(event), std::move(message), false});
  // A full disk is told once, by the store's writer.
  if (!done && done.error().code == Code::kUnavailable) {
    log::debug("job {}: its step cannot be stored: {}", job_.id, done.error().line());
  } else if (!done) {
    log::error("job {}: its step cannot be stored: {}", job_.id, done.error().line());
  }
  return done.has_value();
}

}  // namespace clusterctl::job
