// One change of the fleet as the writer commits it: everything in it becomes durable and visible
// together, or nothing does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "access/api_token.h"
#include "controller/departed.h"
#include "controller/event_log.h"
#include "controller/history.h"
#include "controller/join_token.h"
#include "controller/once.h"
#include "controller/revision.h"
#include "controller/stored_plan.h"
#include "fleet/snapshot.h"
#include "job/job.h"

namespace clusterctl::controller {

struct Change {
  std::map<std::string, fleet::Node> nodes;  // added or replaced, by id
  std::set<std::string> removed_nodes;
  std::map<std::string, std::optional<fleet::Tombstone>> tombstones;  // nullopt: remove
  std::optional<Json> globals;
  std::optional<fleet::Cluster> cluster;
  std::map<std::string, job::Job> jobs;
  std::set<std::string> removed_jobs;
  std::map<std::string, std::optional<Json>> secrets;                  // nullopt: remove
  std::map<std::string, std::optional<StoredPlan>> plans;              // nullopt: remove
  std::map<std::string, std::optional<access::ApiToken>> tokens = {};  // by id; nullopt: remove
  std::map<std::string, std::optional<JoinToken>> join_tokens = {};    // by id; nullopt: remove
  DepartedChanges departed = {};                                       // by id of the removed node
  KeyChanges keys = {};                                                // Idempotency-Keys
  std::vector<Event> events;                                           // numbered by the writer
  std::optional<std::optional<Time>> isolated_since;  // since when most nodes are out of sight
  std::vector<HistoryEntry> history;                  // derived from all that; numbered likewise
  std::string by, reason;  // who makes it, and why, if that was said; for the history
  std::string what;        // how it is called in the list of revisions
  // Filled by the writer when it commits.
  std::optional<Revision> revision = std::nullopt;
  std::set<uint64_t> forgotten_revisions = {};
};

// What readers see: immutable, shared by pointer.
struct State {
  std::shared_ptr<const fleet::Snapshot> fleet = std::make_shared<fleet::Snapshot>();
  std::map<std::string, std::shared_ptr<const job::Job>> jobs;  // by id: oldest first
  std::map<std::string, Json> secrets;
  std::map<std::string, access::ApiToken> tokens;  // by id
  Histories history;
  uint64_t globals_revision = 0;
  std::map<std::string, std::shared_ptr<const StoredPlan>> plans;  // by id: oldest first
  std::map<uint64_t, std::shared_ptr<const Revision>> revisions;   // of what is wanted
  std::map<std::string, JoinToken> join_tokens;                    // by id
  DepartedMachines departed;                                       // by id of the removed node
};

// How a secret's value is known to the fleet (fleet::Snapshot::secret_digests).
std::string secret_digest(const Json& value);

// `state` with `change` in it.
State apply(const State& state, const Change& change);

}  // namespace clusterctl::controller
