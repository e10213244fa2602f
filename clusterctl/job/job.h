// The job record: one piece of work on nodes, its stages and its outcome per node. Plain values;
// JSON in job_json.h. A job holds everything a restarted daemon needs to go on with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "fleet/node.h"
#include "plan/plan.h"

namespace clusterctl::job {

enum class State { kQueued, kRunning, kPaused, kSucceeded, kFailed, kCancelled, kInterrupted };
constexpr bool is_final(State s) {
  return s >= State::kSucceeded;
}
std::string_view to_word(State s);
std::vector<std::string> state_words();

enum class StageState {
  kPending,
  kPrepared,
  kRunning,
  kSucceeded,
  kFailed,
  kCancelled,
  kInterrupted,
  kSkipped
};
constexpr bool is_final(StageState s) {
  return s >= StageState::kSucceeded;
}
std::string_view to_word(StageState s);

// One playbook run of a job.
struct StageStatus {
  plan::Stage def;
  std::string run;                 // run id; empty: not prepared yet
  std::vector<std::string> nodes;  // ids of the targets the run was really given
  StageState state = StageState::kPending;
  bool closing =
      false;  // added after the planned ones: puts failed nodes in order, cannot be cancelled
  std::vector<std::string> fences;  // broken runs whose processes this run ends first
  std::optional<Time> started, ended;

  // It puts things in order: neither a cancel, a pause nor a time limit stops it.
  bool puts_back() const { return closing || def.restores; }
};

enum class OutcomeState { kPending, kRunning, kSucceeded, kFailed, kCancelled, kUntouched };
std::string_view to_word(OutcomeState s);

// What became of one node in this job.
struct NodeOutcome {
  std::string node;  // id
  std::string name;
  OutcomeState state = OutcomeState::kPending;
  bool touched = false;     // a converging or cleaning task was begun there
  bool begun = false;       // rolling work: its batch has begun, the node is in Maintenance for it
  uint64_t generation = 0;  // of the node when the job ended: a resume builds on what it was then
  bool was_out = false;     // it was in Maintenance before: untouched, it is no better than that
  std::string stage;        // where it failed
  std::string service;
  std::string task;
  std::string message;  // the module's own message, one line
  std::string hint;
  std::string code;     // known cause: its word in hints.yml, or the code of the check's finding
  std::string cleanup;  // after a failure: "", "cleaned", "failed: <message>", "kept"
};

// A pause that was asked for, and what became of it. A job stops at the next gate between stages.
struct Pause {
  bool requested = false;
  std::optional<Time> since;         // the job stands still since then
  std::chrono::milliseconds sum{0};  // of earlier pauses: not counted as time of the job
};

// A time limit that was passed: the job is ended for it, at a task, then at once.
struct Overrun {
  std::string reason;  // "timeout", "silence_timeout"; empty: none
  std::string error;   // one line
  std::optional<Time> at;
};

// How a job that ended badly is gone on with (job/continue.h).
struct Continuation {
  std::string continues;     // the job this one goes on from
  std::string continued_by;  // the job that goes on from this one
  std::map<std::string, std::vector<std::string>>
      passed;                  // node id -> planned stages that it has behind it
  bool keeps_secrets = false;  // values of its secret variables are still stored
  bool secrets_gone = false;   // they were, and are no longer: it cannot be gone on with
  std::string order;           // the first job of the chain; empty: this one
};

// One change of a node's state in the scheduler, written down before the run that makes it. What is
// open when the job does not reach its aim for that node is put back by a closing stage.
enum class UndoState {
  kRecorded,  // the run that makes the change may have begun
  kDone,      // made; open as long as the job may still fail
  kUndone,    // put back
  kKept,      // left as it is: it was the aim, or the evidence is kept
  kFailed     // could not be put back
};
constexpr bool is_open(UndoState s) {
  return s == UndoState::kRecorded || s == UndoState::kDone;
}
std::string_view to_word(UndoState s);

struct UndoEntry {
  std::string node;      // id
  std::string what;      // "availability", "handover"
  std::string from, to;  // words of that matter
  UndoState state = UndoState::kRecorded;
};

// A step of a plan that was applied (docs/apply.md).
struct Chain {
  std::string plan;      // its id
  std::string after;     // the job that has to succeed first; empty: none
  bool removes = false;  // nodes that end well leave the fleet with it
};

struct Job {
  std::string id;
  std::string kind;       // "commission", "decommission", "check", "verify", …
  std::string title;      // "commission 3 nodes as service-master"; never a variable's value
  std::string initiator;  // who asked: "uid:0", "token"
  State state = State::kQueued;
  bool cancel_requested = false;
  bool cancel_now = false;
  Pause pause;
  Overrun overrun;
  Continuation continuation;
  Chain chain;
  std::string reason;  // stable word of the failure: "quorum_lost", "node_failed", "check_failed",
                       // "interrupted" …
  std::string error;   // one line: node, service, task, the module's message
  std::string hint;
  plan::Request request;  // as accepted; secrets as references
  std::vector<StageStatus> stages;
  std::vector<NodeOutcome> nodes;
  std::map<std::string, fleet::Role> roles;         // of the targets, by node id
  std::map<std::string, plan::SpecChange> changes;  // what the accepting commit set, by node id
  std::map<std::string, plan::SpecChange> undo;     // what stood there before
  std::vector<UndoEntry> ledger;                    // undo ledger, oldest first: see undo.h
  // Fingerprint of what each node was converged with (plan/drift.h), by node id: the variables may
  // be changed while the job runs.
  std::map<std::string, std::string> rendered;
  std::optional<plan::Stage> cleanup;  // template for nodes that fail
  std::map<std::string, std::vector<plan::Stage>>
      put_back;  // for a node that fails: what gives it back what it was
  std::map<std::string, std::string> parts;  // node id -> kind of work it goes through, if another
  std::vector<Problem> problems;             // findings of the check stage, per node
  std::vector<Problem> warnings;
  Time created{};
  std::optional<Time> started, ended;
  uint64_t resource_version = 1;

  NodeOutcome* outcome(std::string_view node_id);
  const NodeOutcome* outcome(std::string_view node_id) const;
  // The kind of work that this node goes through.
  const std::string& part_of(const std::string& node_id) const;
  // What the planner's functions need of it.
  plan::Plan as_plan() const;
};

}  // namespace clusterctl::job
