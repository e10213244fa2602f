// From a request to a Plan, or to every reason why not. Pure: snapshot and time are arguments. Any
// thread.
//
// A Plan is data: stages in order, one stage = one playbook run. The job room steps through it; the
// controller applies `changes` in the commit that accepts the job.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "catalog/catalog.h"
#include "fleet/quorum.h"
#include "fleet/snapshot.h"

namespace clusterctl::plan {

// A job request, decoded and checked for form (docs/rest.md, JobRequest).
struct Request {
  std::string kind;
  std::vector<std::string> nodes;  // names, ids or prefixes as given
  std::string host_group;
  std::vector<std::string> capabilities;
  std::optional<fleet::Availability> availability;
  Json vars = Json::object();
  std::string selector;
  std::string level = "state";
  bool force = false;
  bool powered_off = false;
  bool allow_outage = false;
  bool controller_host = false;  // commission: the controller's own machine is meant
  bool keep_on_failure = false;
  std::string if_busy = "queue";
  bool dry_run = false;
  // The job is stopped when it takes longer, or when its run gives no sign of life for so long.
  std::optional<std::chrono::seconds> timeout, silence_timeout;
  std::string max_unavailable;  // update, drain: "2" or "10%" of the workers; empty: the cluster's
  int max_failures = 1;         // update: stops before the next batch when so many have failed
  std::string drain = "auto";   // update: "auto", "always", "never"
  std::optional<int> deadline;  // drain, update: seconds a drain may take; else the role's default
  std::vector<std::string> services;  // update: only these; empty: all of them
  std::string with;                   // replace: the node that takes the place of the named one
  bool take_vars = false;             // replace: it gets the other one's variables as well
  // maintenance-enter, reboot: why and for whom; maintenance-enter: when it should be over.
  std::string reason, owner;
  std::optional<Time> until;
  std::optional<std::chrono::seconds> lasts;  // the same, counted from when it begins
};
Result<Request> parse_request(const Json& body);
Json to_json(const Request& request);

inline const std::vector<std::string> kKinds{
    "commission",        "decommission",     "check", "verify",  "observe", "drain",
    "activate",          "update",           "pause", "promote", "demote",  "replace",
    "maintenance-enter", "maintenance-exit", "reboot"};
// Kinds that only set the scheduler's availability, and to what.
inline std::optional<fleet::Availability> availability_of(std::string_view kind) {
  if (kind == "drain") return fleet::Availability::kDrain;
  if (kind == "pause") return fleet::Availability::kPause;
  if (kind == "activate") return fleet::Availability::kActive;
  return std::nullopt;
}
// Work on commissioned nodes that may give them another group or other capabilities.
inline bool reassigns(const Request& r) {
  return r.kind == "promote" || r.kind == "demote" ||
         (r.kind == "update" && !r.nodes.empty() &&
          (!r.host_group.empty() || !r.capabilities.empty()));
}

// A member that will never answer, with the ids by which it is removed.
struct Lost {
  std::string name;
  std::string addr;
  std::map<std::string, std::string> ids;  // service -> member id
};

// Variables of group `all` of a run (docs/run-contract.md section 2); node names, not ids.
struct RunVars {
  std::string initiator;
  std::string peer;
  std::vector<std::string> managers;
  std::string endpoint;
  std::vector<std::string> leaving;
  std::vector<Lost> lost;
  std::vector<std::string> only_services;
  std::string cleanup_level = "state";
  std::optional<int> drain_deadline;  // seconds; 0: set the availability and do not wait
};

struct Stage {
  std::string name;      // "check", "observe", "site", "verify", "cleanup", "forget", "drain",
                         // "activate", "restore", "undo", "step-down", "put-back", "pause",
                         // "handover", "reboot", "takeback", "return"
  std::string playbook;  // "site.yml"
  std::vector<std::string> nodes;  // target ids, in the order of work
  std::vector<std::string> peers;  // ids of commissioned managers that go along as data
  std::map<std::string, std::vector<std::string>>
      services;             // target and peer ids -> ordered services
  bool one_by_one = false;  // managers one after the other (for people; the playbook does it)
  RunVars vars;
  // What the run makes the scheduler's availability of its targets, by node id: done through a
  // manager, so the targets themselves need not answer.
  std::map<std::string, fleet::Availability> availability;
  // A handover: may services that move by themselves (catalog `hands_over`) come to its targets?
  std::optional<bool> in_service;
  bool restores = false;  // it puts back what the job's undo ledger holds
  int batch = 0;  // rolling work: stages of one number belong together; before each number a gate
  // Its targets stand with the role and group that were last verified, not with the wanted ones.
  bool as_before = false;
  std::vector<std::string> about;  // ids it is about without going there (forget)
};

// The members of one quorum service around this job.
struct QuorumView {
  int total_before = 0, reachable_before = 0, total_after = 0;
  int tolerates_after = 0;  // members that may fail afterwards
};

// What the accepting commit changes on a node; undone if the job fails for it.
struct SpecChange {
  std::string host_group;
  std::vector<std::string> capabilities;  // empty: the group's defaults
  fleet::Availability availability = fleet::Availability::kActive;
  // Only when the node takes another one's place.
  std::optional<std::map<std::string, std::string>> labels = std::nullopt;
  std::optional<Json> vars = std::nullopt;
  bool operator==(const SpecChange&) const = default;
};
// What a node's spec says of these now.
inline SpecChange wish_of(const fleet::Node& node) {
  return {node.spec.host_group, node.spec.capabilities, node.spec.availability, {}, {}};
}

struct Plan {
  std::string kind;
  std::string title;
  std::vector<std::string> targets;           // node ids, in the order of work: managers first
  std::map<std::string, SpecChange> changes;  // by node id
  std::map<std::string, fleet::Role> roles;   // by node id of targets
  std::vector<Stage> stages;
  // Run for the nodes that failed, when they were touched (commission); narrowed to them by
  // cleanup_for. Absent with keep_on_failure.
  std::optional<Stage> cleanup;
  // By node id: closing stages that give a node back what it was, when it failed and was touched.
  std::map<std::string, std::vector<Stage>> put_back;
  // By node id: the kind of work that this node goes through, where that is not the plan's
  // (replace).
  std::map<std::string, std::string> parts;
  std::map<std::string, QuorumView> quorum;  // by service
  // Targets that are powered off for good (decommission with force): no stage goes there, they end
  // Decommissioned with NotCleaned.
  bool powered_off = false;
  std::vector<Problem> warnings;
};
Json to_json(const Plan& plan, const fleet::Snapshot& snapshot);

// Collects all problems of all nodes, then refuses as a whole (kInvalid for form, kNotFound for
// names, kConflict for transition and quorum, kRefused for placement; the gravest decides).
Result<Plan> make_plan(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                       const Request& request);

// The quorum rules of a plan once more, on what an `observe` stage has just seen. Only kConflict
// "quorum_lost" or success.
Status recheck_quorum(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                      const Request& request, const Plan& plan);

// The same request with what the plan found: names in the order of work, their common group. What a
// queued job keeps, so that planning it again takes the same nodes.
Request pinned(const Request& request, const Plan& plan, const fleet::Snapshot& snapshot);

// The plan's cleanup for these failed targets only: nodes, services, `leaving`; managers of the
// plan that did not fail become peers. nullopt when there is nothing to run.
std::optional<Stage> cleanup_for(const Plan& plan, const fleet::Snapshot& snapshot,
                                 const std::vector<std::string>& failed);

// Sets the availability of these nodes through a manager that answers and is not in `not_through`
// (ids); without one through the first of them that is a manager. Managers go along as peers.
Stage availability_stage(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                         const std::string& name,
                         const std::map<std::string, fleet::Availability>& availability,
                         const std::set<std::string>& not_through = {});

// The services of these nodes (ids) that move by themselves go to other nodes, or may come back.
Stage handover_stage(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                     const std::string& name, const std::set<std::string>& nodes, bool in_service);

// What a node gets back when its stay out of service is over.
fleet::Availability availability_before(const fleet::Node& node);

// "maintenance enter" for "maintenance-enter": the kind as the command line says it.
std::string command_words(std::string_view kind);

// What the scheduler was last known to have for this node: verified, else wanted.
fleet::Availability last_availability(const fleet::Node& node);

// Workers that may be down at once: "3", or "10%" of `workers` rounded down, at least 1; nullopt
// when it is neither.
std::optional<int> budget(const std::string& max_unavailable, int workers);

// The commissioned workers, and which of them are down or out of use: disappeared, drained, in
// Maintenance, being decommissioned, unhealthy by their own last report or by that of a manager.
struct WorkerState {
  std::set<std::string> all, unavailable;  // ids
  std::set<std::string> wished;            // still in use, and work is accepted that drains them
};
WorkerState worker_state(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog);

// The one question that every kind of work asks before it takes workers out of use.
struct Budget {
  std::string wanted;             // as it was said: "2", "10%"
  int workers = 0;                // all there are
  int may = 1;                    // so many may be out of use at once
  std::set<std::string> away;     // ids that are, or will be by other work
  std::set<std::string> costing;  // ids of those asked about that would be taken out of use
  int room() const { return may - static_cast<int>(away.size()); }
  bool fits() const { return costing.empty() || static_cast<int>(costing.size()) <= room(); }
};
// `max_unavailable`: of the request; empty: the cluster's. `waiting` (ids): drains that are wanted
// by jobs that have not begun; those ask for themselves when they begin, and are not counted here.
Budget budget_for(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                  const std::string& max_unavailable, const std::vector<std::string>& nodes,
                  const std::set<std::string>& waiting = {});
// Why it does not fit: kConflict "budget". `snapshot` names the nodes.
Problem over_budget(const Budget& budget, const fleet::Snapshot& snapshot);

// A node's effective variables: catalog defaults of `when` < globals < host group < node (<
// request, when given), shallow.
Json effective_vars(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                    const fleet::Node& node, std::string_view host_group,
                    const Json& request_vars = Json::object());

// sha256 over what the operator set for this node and the catalog version; nothing of the request,
// nothing derived from other nodes.
std::string vars_fingerprint(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                             const fleet::Node& node, std::string_view host_group);

// The role of a node: by what was applied, else by what is wanted; nullopt when it has no group.
std::optional<fleet::Role> role_of(const catalog::Catalog& catalog, const fleet::Node& node);

// The members of every quorum service of the catalog by last observation, in provisioning order.
std::vector<fleet::View> observe_members(const fleet::Snapshot& snapshot,
                                         const catalog::Catalog& catalog);

// What `applied` becomes when `stage` has verified this target.
fleet::Applied applied_after(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                             const Plan& plan, const fleet::Node& node);

}  // namespace clusterctl::plan
