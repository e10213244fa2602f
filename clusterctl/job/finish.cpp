#include "job/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fleet/conditions.h"
#include "fleet/words.h"
#include "job/causes.h"
#include "job/rolling.h"
#include "job/stay.h"
#include "job/undo.h"
#include "plan/drift.h"
#include "plan/plan.h"

namespace clusterctl::job {
namespace {

using fleet::Event;

struct KindRow {
  std::string_view kind;
  Event start, success, failure, untouched;
  std::string_view
      failure_mark;      // condition of a node that was touched and not put in order; or ""
  bool rolling = false;  // nodes begin and end with their batch
};

constexpr std::array kKinds{
    KindRow{"commission", Event::kCommission, Event::kCommissioned, Event::kCommissionFailed,
            Event::kCommissionFailed, "Dirty"},
    KindRow{"decommission", Event::kDecommission, Event::kDecommissioned,
            Event::kDecommissionFailed, Event::kDecommissionUntouched, "NotCleaned"},
    KindRow{"update", Event::kMaintain, Event::kMaintained, Event::kMaintenanceFailed,
            Event::kMaintenanceUntouched, "", true},
    KindRow{"promote", Event::kMaintain, Event::kMaintained, Event::kMaintenanceFailed,
            Event::kMaintenanceUntouched, "", true},
    KindRow{"demote", Event::kMaintain, Event::kMaintained, Event::kMaintenanceFailed,
            Event::kMaintenanceUntouched, "", true},
    // What these mean for a node is in stay.cpp.
    KindRow{"maintenance-enter", Event::kMaintain, Event::kMaintain, Event::kMaintenanceUntouched,
            Event::kMaintenanceUntouched, "", true},
    KindRow{"maintenance-exit", Event::kMaintain, Event::kMaintained, Event::kMaintenanceFailed,
            Event::kMaintenanceFailed, "", true},
    KindRow{"reboot", Event::kMaintain, Event::kMaintained, Event::kMaintenanceFailed,
            Event::kMaintenanceUntouched, "", true},
};

const KindRow* row(std::string_view kind) {
  const auto it =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& r) { return r.kind == kind; });
  return it == kKinds.end() ? nullptr : &*it;
}

bool failed(const NodeOutcome& n) {
  return n.state == OutcomeState::kFailed || n.state == OutcomeState::kCancelled;
}

// Nodes begin and end with their batch; those of a replacement each by its own half.
bool is_rolling(const Job& job) {
  const KindRow* r = row(job.kind);
  return !job.parts.empty() || (r && r->rolling);
}

// The state of a node while this kind of work goes on there.
fleet::Lifecycle busy_state(const KindRow& kind) {
  for (const fleet::Transition& t : fleet::transitions()) {
    if (t.event == kind.start) return t.to;
  }
  return fleet::Lifecycle::kMaintenance;
}

void mark_failed(NodeOutcome& n, const StageStatus& stage, const Failure& failure, bool cancelled) {
  n.state = cancelled ? OutcomeState::kCancelled : OutcomeState::kFailed;
  n.stage = stage.def.name;
  n.service = failure.service;
  n.task = failure.task;
  n.message = failure.message;
  n.hint = failure.hint;
  n.code = failure.code;
}

}  // namespace

std::optional<Event> start_event(std::string_view kind) {
  const KindRow* r = row(kind);
  return r && !r->rolling ? std::optional(r->start) : std::nullopt;
}

std::optional<Event> begin_event(std::string_view kind) {
  const KindRow* r = row(kind);
  return r ? std::optional(r->start) : std::nullopt;
}

bool changes_spec(std::string_view kind) {
  return row(kind) || kind == "replace" || plan::availability_of(kind);
}

void record_outcome(Job& job, const StageStatus& stage, const StageOutcome& outcome,
                    const std::vector<std::string>& touched) {
  job.problems.insert(job.problems.end(), outcome.problems.begin(), outcome.problems.end());
  if (stage.def.name == "observe")
    return;  // looks only: an unreachable member is an observation, not a failure of the job
  const bool closing = stage.closing;
  if (closing && stage.def.restores) return;  // the ledger tells what became of it
  for (const std::string& id : touched) {
    if (NodeOutcome* n = job.outcome(id)) n->touched = true;
  }
  for (const std::string& id : stage.nodes) {
    NodeOutcome* n = job.outcome(id);
    if (n && closing && n->cleanup.empty())
      n->cleanup = job.put_back.count(id) ? "put back" : "cleaned";
  }
  for (const Failure& failure : outcome.failures) {
    NodeOutcome* n = job.outcome(failure.node);
    if (n && closing) {
      n->cleanup = "failed: " + failure.message;
    } else if (n && !failed(*n)) {
      mark_failed(*n, stage, failure, outcome.state == StageState::kCancelled);
    } else if (!n) {  // a delegate failed: what it should have done for the job's nodes is not done
      const auto& about = stage.def.about;
      for (NodeOutcome& node : job.nodes) {
        const bool meant =
            about.empty() || std::find(about.begin(), about.end(), node.node) != about.end();
        if (meant && !failed(node))
          mark_failed(node, stage, failure, outcome.state == StageState::kCancelled);
      }
    }
  }
}

bool stops_job(Job& job, const StageStatus& stage, const StageOutcome& outcome) {
  const auto stop = [&](std::string reason, std::string error) {
    job.reason = std::move(reason);
    job.error = std::move(error);
    return true;
  };
  if (outcome.state == StageState::kInterrupted) return stop("interrupted", outcome.error);
  // Of what puts nodes in order it says nothing about the job, which had its reason before.
  if (outcome.state == StageState::kCancelled && !stage.puts_back())
    return stop("cancelled", "cancelled on request");
  if (stage.def.name == "observe" && !outcome.error.empty())
    return stop("observe_failed", outcome.error);
  if (stage.def.name != "check" || job.kind != "commission") return false;
  // Losing a manager before the first change would make another plan: nothing was changed yet, so
  // say so and stop.
  for (const NodeOutcome& n : job.nodes) {
    const auto role = job.roles.find(n.node);
    if (n.state == OutcomeState::kFailed && role != job.roles.end() &&
        role->second == fleet::Role::kManager) {
      job.hint = n.hint;
      return stop("check_failed", cause_line(n) + "; nothing was changed");
    }
  }
  return false;
}

namespace {

// A node whose role or services were being changed becomes again what it was.
std::vector<StageStatus> put_back_stages(const Job& job, const std::vector<std::string>& broken) {
  std::vector<StageStatus> out;
  if (job.request.keep_on_failure) return out;
  for (const std::string& id : broken) {
    const auto back = job.put_back.find(id);
    if (back == job.put_back.end()) continue;
    for (const plan::Stage& def : back->second) {
      out.emplace_back();
      out.back().closing = true;
      out.back().def = def;
    }
  }
  return out;
}

}  // namespace

std::vector<StageStatus> closing_stages(const Job& job, const fleet::Snapshot& fleet) {
  const bool had = std::any_of(job.stages.begin(), job.stages.end(),
                               [](const StageStatus& s) { return s.closing && !s.def.restores; });
  if (had || job.reason == "interrupted") return {};
  std::vector<std::string> broken;
  bool lost_manager = false;
  for (const NodeOutcome& n : job.nodes) {
    const bool left_halfway = n.state == OutcomeState::kRunning && !job.reason.empty();
    if (!n.touched || !(failed(n) || left_halfway)) continue;
    broken.push_back(n.node);
    lost_manager = lost_manager || job.roles.at(n.node) == fleet::Role::kManager;
  }
  if (auto back = put_back_stages(job, broken); !back.empty()) return back;
  const auto stage = plan::cleanup_for(job.as_plan(), fleet, broken);
  if (!stage) return {};
  std::vector<StageStatus> out(1);
  out[0].closing = true;
  out[0].def = *stage;
  if (lost_manager &&
      !stage->peers.empty()) {  // the members that stay count without those that left
    out.emplace_back();
    out[1].closing = true;
    out[1].def = *stage;
    out[1].def.name = "observe";
    out[1].def.playbook = "observe.yml";
    out[1].def.nodes = stage->peers;
    out[1].def.peers.clear();
    out[1].def.vars.leaving.clear();
  }
  return out;
}

namespace {

class Finish {
 public:
  Finish(Job& job, const fleet::Snapshot& fleet, const catalog::Catalog& catalog, Time now)
      : job_(job), fleet_(fleet), catalog_(catalog), now_(now) {}

  std::vector<NodeChange> run() {
    std::vector<NodeChange> changes;
    int bad = 0;
    for (NodeOutcome& n : job_.nodes) settle(n);
    const std::vector<UndoEntry> before = job_.ledger;
    close_ledger(job_);
    for (const NodeOutcome& n : job_.nodes) {
      bad += n.state != OutcomeState::kSucceeded;
      if (!fleet_.nodes.count(n.node)) continue;
      changes.push_back(change_of(n));
      add_ledger_marks(n, changes.back());
      note_what_stayed(before, n, changes.back());
    }
    conclude(bad);
    note_replaced(changes);
    return changes;
  }

  NodeChange change_of(const NodeOutcome& n) const {
    const KindRow* kind = row(job_.part_of(n.node));
    const bool done = n.state == OutcomeState::kSucceeded;
    if (plan::availability_of(job_.kind)) return scheduled(n);
    if (is_stay(job_.kind)) return stay_change(job_, n, fleet_.nodes.at(n.node), now_);
    if (!kind) return observed(n);
    if (!is_rolling(job_)) return done ? success(n, *kind) : failure(n, *kind);
    if (done && fleet_.nodes.at(n.node).status.lifecycle != busy_state(*kind))
      return unchanged(n);  // its batch has said so
    if (done) return success(n, *kind);
    return kind->rolling ? rolling_failure(n, *kind) : failure(n, *kind);
  }

 private:
  static NodeChange unchanged(const NodeOutcome& n) {
    NodeChange change;
    change.id = n.node;
    return change;
  }

  // A node without a verdict when the job ends: done if the job ran through, otherwise not reached.
  void settle(NodeOutcome& n) const {
    const bool open = n.state == OutcomeState::kPending || n.state == OutcomeState::kRunning;
    if (open && job_.reason.empty()) {
      n.state = OutcomeState::kSucceeded;
    } else if (open) {
      n.state = !n.touched                   ? OutcomeState::kUntouched
                : job_.reason == "cancelled" ? OutcomeState::kCancelled
                                             : OutcomeState::kFailed;
      if (n.message.empty()) n.message = job_.error;
    }
    const bool changed = n.touched || holds_change(n.node);
    if (failed(n) && changed && n.cleanup.empty() && job_.request.keep_on_failure)
      n.cleanup = "kept";
  }

  bool holds_change(const std::string& node) const {
    return std::any_of(job_.ledger.begin(), job_.ledger.end(),
                       [&](const UndoEntry& e) { return e.node == node && is_open(e.state); });
  }

  NodeChange success(const NodeOutcome& n, const KindRow& kind) const {
    NodeChange change;
    change.id = n.node;
    // What somebody has taken into maintenance stays there, also when it was updated meanwhile.
    const bool stays = kind.rolling && fleet_.nodes.at(n.node).status.maintenance;
    if (!stays) change.event = kind.success;
    change.clear_conditions = {"Dirty",      "Failed", "Interrupted", "NeedsVerification",
                               "NotCleaned", "Pending"};
    if (kind.kind != "decommission") {
      change.applied =
          plan::applied_after(fleet_, catalog_, job_.as_plan(), fleet_.nodes.at(n.node));
      forget_if_changed(n.node, **change.applied);
    } else {
      change.applied = std::optional<fleet::Applied>();
      change.clear_services = true;
      change.maintenance = std::optional<fleet::Maintenance>();
      change.clear_conditions.emplace_back(fleet::condition::kMaintenanceOverdue);
      // Removed through a survivor, never seen again: it must not be trusted when it comes back.
      if (job_.request.force && !cleaned_itself(n.node)) {
        std::erase(change.clear_conditions, "NotCleaned");
        change.set_conditions.push_back(
            {"NotCleaned", "removed by --force without reaching it", job_.id, now_});
      }
    }
    return change;
  }

  // The variables were changed after the node was converged: what it was converged with is known no
  // more, so that it counts as drifted.
  void forget_if_changed(const std::string& id, fleet::Applied& applied) const {
    const auto with = job_.rendered.find(id);
    if (with == job_.rendered.end() ||
        with->second ==
            plan::config_fingerprint(fleet_, catalog_, fleet_.nodes.at(id), applied.host_group))
      return;
    applied.vars_fingerprint.clear();
    applied.vars.clear();
  }

  bool cleaned_itself(const std::string& id) const {
    return std::any_of(job_.stages.begin(), job_.stages.end(), [&](const StageStatus& s) {
      return s.def.name == "cleanup" && s.state == StageState::kSucceeded &&
             std::find(s.nodes.begin(), s.nodes.end(), id) != s.nodes.end();
    });
  }

  NodeChange failure(const NodeOutcome& n, const KindRow& kind) const {
    NodeChange change;
    change.id = n.node;
    if (!is_rolling(job_) || n.begun) change.event = n.touched ? kind.failure : kind.untouched;
    const bool clean = !n.touched || n.cleanup == "cleaned";
    // Who was not reached, or was put in order after a cancel, has not failed.
    if (n.state == OutcomeState::kFailed || !clean)
      change.set_conditions.push_back({"Failed", n.message, job_.id, now_});
    if (!clean)
      change.set_conditions.push_back(
          {std::string(kind.failure_mark), mark_reason(n), job_.id, now_});
    if (job_.reason == "interrupted" && (!is_rolling(job_) || n.begun))
      change.set_conditions.push_back({"Interrupted", job_.error, job_.id, now_});
    if (clean && n.touched) change.clear_conditions = {"Dirty", "Interrupted"};
    if (kind.kind == "commission") {
      change.clear_services = clean;
      change.wish_back = true;
    }
    return change;
  }

  // Still a member, whatever happened: nothing is cleaned.
  NodeChange rolling_failure(const NodeOutcome& n, const KindRow& kind) const {
    NodeChange change = unchanged(n);
    if (n.begun) change.event = n.touched || n.was_out ? kind.failure : kind.untouched;
    const bool bad = n.state == OutcomeState::kFailed || n.touched;  // else it was not reached
    if (bad) change.set_conditions.push_back({"Failed", n.message, job_.id, now_});
    if (bad && job_.reason == "interrupted")
      change.set_conditions.push_back({"Interrupted", job_.error, job_.id, now_});
    // Another group is recorded only when it is true.
    change.wish_back = true;
    // In between two roles it may carry what belongs to either.
    if (n.touched && job_.put_back.count(n.node) && n.cleanup != "put back")
      change.set_conditions.push_back({"Dirty",
                                       n.cleanup.rfind("failed: ", 0) == 0
                                           ? "could not be put back: " + n.cleanup.substr(8)
                                           : "left between what it was and what was wanted",
                                       job_.id, now_});
    return change;
  }

  // drain, pause, activate: what is wanted and what was applied follow what was really done.
  NodeChange scheduled(const NodeOutcome& n) const {
    NodeChange change = unchanged(n);
    const auto wanted = job_.changes.find(n.node);
    if (wanted == job_.changes.end()) return change;
    if (n.state == OutcomeState::kSucceeded) {
      change.applied_availability = wanted->second.availability;
    } else {
      change.wish_back = n.cleanup != "kept";
    }
    return change;
  }

  void add_ledger_marks(const NodeOutcome& n, NodeChange& change) const {
    for (const UndoEntry& e : job_.ledger) {
      if (e.node != n.node || e.state != UndoState::kFailed) continue;
      const std::string way =
          is_stay(job_.kind)
              ? fmt::format("`clusterctl node maintenance enter {0}` and `exit` set it", n.name)
              : fmt::format("`clusterctl node {} {}` sets it",
                            e.from == "drain" ? "drain" : "activate", n.name);
      change.set_conditions.push_back(
          {"NeedsVerification",
           fmt::format("its {} may be {} still and could not be put back to {}: {}", e.what, e.to,
                       e.from, way),
           job_.id, now_});
    }
  }

  // What was made and could not be put back is what the scheduler has.
  void note_what_stayed(const std::vector<UndoEntry>& before, const NodeOutcome& n,
                        NodeChange& change) const {
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].node != n.node || before[i].state != UndoState::kDone ||
          job_.ledger[i].state != UndoState::kFailed)
        continue;
      if (const auto to = fleet::from_word<fleet::Availability>(before[i].to))
        change.applied_availability = *to;
    }
  }

  static std::string mark_reason(const NodeOutcome& n) {
    if (n.cleanup.empty()) return "not cleaned after: " + n.message;
    return n.cleanup == "kept" ? "left as it failed, on request" : "cleanup " + n.cleanup;
  }

  NodeChange observed(const NodeOutcome& n) const {
    NodeChange change;
    change.id = n.node;
    const bool commissioned = fleet_.nodes.at(n.node).status.applied.has_value();
    if (job_.kind != "verify" || !commissioned) return change;
    if (n.state == OutcomeState::kSucceeded) {
      change.clear_conditions = {"NeedsVerification"};
      // One that failed in an update stays out of service until an update has ended well.
      if (fleet_.nodes.at(n.node).status.lifecycle != fleet::Lifecycle::kMaintenance) {
        change.clear_conditions.insert(change.clear_conditions.end(), {"Failed", "Interrupted"});
      }
    } else {
      change.set_conditions.push_back({"NeedsVerification", n.message, job_.id, now_});
    }
    return change;
  }

  // Who gave up its place does not give it up a second time. Its half may have been another job's.
  void note_replaced(std::vector<NodeChange>& changes) const {
    if (job_.kind != "replace" || job_.state != State::kSucceeded) return;
    const auto old = fleet_.find(job_.request.nodes[0]);
    if (!old) return;
    auto change = std::find_if(changes.begin(), changes.end(),
                               [&](const NodeChange& c) { return c.id == (*old)->id; });
    if (change == changes.end()) {
      changes.emplace_back();
      change = changes.end() - 1;
      change->id = (*old)->id;
    }
    change->set_conditions.push_back({std::string(fleet::condition::kReplaced),
                                      job_.request.with + " has its place", job_.id, now_});
  }

  void conclude(int bad) {
    job_.ended = now_;
    if (job_.reason == "interrupted") {
      job_.state = State::kInterrupted;
    } else if (job_.reason == "cancelled") {
      job_.state = State::kCancelled;
    } else if (!job_.reason.empty() || bad > 0) {
      job_.state = State::kFailed;
      if (job_.reason.empty()) job_.reason = job_.kind == "check" ? "check_failed" : "node_failed";
      say_why();
    } else {
      job_.state = State::kSucceeded;
    }
    if (is_rolling(job_) && job_.state != State::kSucceeded) job_.error += " (" + tally(job_) + ")";
  }

  // One line for all of its nodes, and what to do about the first reason.
  void say_why() {
    const auto groups = group_causes(job_, &fleet_);
    if (job_.error.empty()) job_.error = cause_summary(groups);
    if (job_.hint.empty() && !groups.empty()) job_.hint = groups[0].hint;
    if (job_.hint.empty() && !job_.put_back.empty())
      job_.hint = fmt::format("clusterctl job resume {} tries it again", job_.id);
  }

  Job& job_;
  const fleet::Snapshot& fleet_;
  const catalog::Catalog& catalog_;
  Time now_;
};

}  // namespace

NodeChange node_done(const Job& job, const NodeOutcome& n, const fleet::Snapshot& fleet,
                     const catalog::Catalog& catalog) {
  Job copy = job;
  return Finish(copy, fleet, catalog, Time{}).change_of(n);
}

std::vector<NodeChange> finish_job(Job& job, const fleet::Snapshot& fleet,
                                   const catalog::Catalog& catalog, Time now) {
  return Finish(job, fleet, catalog, now).run();
}

}  // namespace clusterctl::job
