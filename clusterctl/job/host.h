// What the job room asks of the controller: read the fleet, propose changes, resolve secrets. Jobs
// never write the store themselves.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ansible/hints.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "catalog/catalog.h"
#include "fleet/lifecycle.h"
#include "fleet/snapshot.h"
#include "job/job.h"
#include "run/runs.h"

namespace clusterctl::job {

// Changes to one node's record. Absent fields stay as they are.
struct NodeChange {
  std::string id;
  std::optional<fleet::Event> event;  // through the lifecycle table
  std::vector<fleet::Condition> set_conditions;
  std::vector<std::string> clear_conditions;
  std::optional<std::optional<fleet::Applied>> applied;
  std::optional<fleet::Availability> applied_availability;       // of what was applied, this alone
  std::optional<std::optional<fleet::Maintenance>> maintenance;  // begun, or over
  std::map<std::string, fleet::ServiceStatus> services;          // added or replaced
  bool clear_services = false;                                   // first
  std::optional<fleet::Hardware> hardware;
  std::optional<fleet::Presence> presence;
  std::optional<Time> last_seen;
  std::optional<std::string> host_key;     // pins it when none is pinned
  bool wish_back = false;                  // what the job wanted of the node is not wanted any more
  std::optional<std::string> needs_fence;  // a run that may have left processes there
  std::vector<std::string> fenced;         // runs of which nothing is left there
};

// A job's next durable step: its record and what it does to nodes, committed together or not at
// all.
struct Proposal {
  Job job;
  std::vector<NodeChange> nodes;
  std::string event;    // "job.started", "job.stage", "job.ended" or empty
  std::string message;  // of the event
  // Its nodes leave service: committed only if the budget has room for them at that moment, else
  // kConflict "budget". So what is asked and what is taken are one step, whoever else asks.
  bool takes_out = false;
};

struct Resolved {
  Json vars;
  std::vector<std::string> secret_values;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual std::shared_ptr<const fleet::Snapshot> fleet() const = 0;
  virtual Status propose(const Proposal& proposal) = 0;
  // The job as stored now: a cancel may have been asked for meanwhile.
  virtual std::optional<Job> current(const std::string& job_id) const = 0;
  // Nodes (ids) that jobs which have not begun want to be drained.
  virtual std::set<std::string> waiting_drains() const = 0;
  // Replaces {"secret": "<name>"} by the value.
  virtual Result<Resolved> resolve(const Json& vars) const = 0;
};

// Settings of the daemon that runs need.
struct RunDefaults {
  std::string user;         // when a node names none
  std::string private_key;  // path or empty
  std::string pki_dir;
  std::shared_ptr<const ansible::Hints> hints = nullptr;  // known causes of failures; may be null
};

struct Context {
  Host& host;
  run::Runs& runs;
  const catalog::Catalog& catalog;
  const Clock& clock;
  Ids& ids;
  RunDefaults defaults;
};

}  // namespace clusterctl::job
