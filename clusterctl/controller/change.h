// One change of the fleet as the writer commits it: everything in it becomes durable and visible
// together, or nothing does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/event_log.h"
#include "controller/revision.h"
#include "controller/stored_plan.h"
#include "fleet/snapshot.h"
#include "job/job.h"

namespace clusterctl::controller {

struct Change {
  std::map<std::string, fleet::Node> nodes;  // added or replaced, by id
  std::set<std::string> removed_nodes;
  std::optional<Json> globals;
  std::optional<fleet::Cluster> cluster;
  std::map<std::string, job::Job> jobs;
  std::set<std::string> removed_jobs;
  std::map<std::string, std::optional<Json>> secrets;      // nullopt: remove
  std::map<std::string, std::optional<StoredPlan>> plans;  // nullopt: remove
  std::vector<Event> events;                               // numbered by the writer
  std::optional<std::optional<Time>> isolated_since;       // since when most nodes are out of sight
  // Who asked for it and how it is called, for the list of revisions.
  std::string by, what;
  // Filled by the writer when it commits.
  std::optional<Revision> revision = std::nullopt;
  std::set<uint64_t> forgotten_revisions = {};
};

// What readers see: immutable, shared by pointer.
struct State {
  std::shared_ptr<const fleet::Snapshot> fleet = std::make_shared<fleet::Snapshot>();
  std::map<std::string, std::shared_ptr<const job::Job>> jobs;  // by id: oldest first
  std::map<std::string, Json> secrets;
  uint64_t globals_revision = 0;
  std::map<std::string, std::shared_ptr<const StoredPlan>> plans;  // by id: oldest first
  std::map<uint64_t, std::shared_ptr<const Revision>> revisions;   // of what is wanted
};

// `state` with `change` in it.
State apply(const State& state, const Change& change);

}  // namespace clusterctl::controller
