// The job record: one piece of work on nodes, its stages and its outcome per node. Plain values; JSON in job_json.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "fleet/node.h"

namespace clusterctl::job {

enum class State { kQueued, kRunning, kPaused, kSucceeded, kFailed, kCancelled, kInterrupted };
constexpr bool is_final(State s) { return s >= State::kSucceeded; }

// One playbook run of a job.
struct StageStatus {
  std::string name;      // "check", "observe", "site", "verify", "cleanup", "forget", …
  std::string run;       // run id; empty: not started
  std::string playbook;
  std::string state;     // "pending", "prepared", "running", "succeeded", "failed", "cancelled", "interrupted", "skipped"
  std::vector<std::string> nodes;  // names of the targets
  std::optional<Time> started, ended;
};

// What became of one node in this job.
struct NodeOutcome {
  std::string node;     // id
  std::string name;
  std::string state;    // "pending", "running", "succeeded", "failed", "cancelled", "untouched"
  std::string stage;    // where it failed
  std::string service;
  std::string task;
  std::string message;  // the module's own message, one line
  std::string hint;
  std::string cleanup;  // after a failure: "", "cleaned", "failed: <message>", "kept"
};

struct Job {
  std::string id;
  std::string kind;   // "commission", "decommission", "check", "verify", …
  std::string title;  // "commission 3 nodes as service-master"; never a variable's value
  std::string initiator;  // who asked: "uid:0", "token"
  State state = State::kQueued;
  bool cancel_requested = false;
  std::string reason;  // stable word of the failure: "quorum_lost", "node_failed", "check_failed", "interrupted" …
  std::string error;   // one line: node, service, task, the module's message
  std::string hint;
  Json request = Json::object();  // as accepted; secrets as references
  std::vector<StageStatus> stages;
  std::vector<NodeOutcome> nodes;
  std::vector<Problem> warnings;
  Time created{};
  std::optional<Time> started, ended;
  uint64_t resource_version = 1;
};

}  // namespace clusterctl::job
