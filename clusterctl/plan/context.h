// What every kind of plan asks of the fleet: who the managers are, through whom to reach the
// cluster, which nodes a request means. Built once per plan, read only; belongs to the planning
// call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleet/placement.h"
#include "fleet/problems.h"
#include "fleet/quorum.h"
#include "plan/plan.h"

namespace clusterctl::plan {

using fleet::Node;
using NodeList = std::vector<const Node*>;

// A job record holds every stage: so many batches fit into it.
inline constexpr size_t kMaxBatches = 100;

class Context {
 public:
  Context(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog, const Request& request);

  const fleet::Snapshot& snapshot() const { return snapshot_; }
  const catalog::Catalog& catalog() const { return catalog_; }
  const Request& request() const { return request_; }
  const std::vector<fleet::View>& views() const { return views_; }

  // Verified managers in service (Allocated, Maintenance), by name; without those in `except`
  // (ids).
  NodeList managers(const std::set<std::string>& except = {}) const;
  // Every commissioned node that is not in `except`, by name.
  NodeList commissioned(const std::set<std::string>& except) const;
  // There are members, or managers, of a cluster.
  bool cluster_exists() const;
  // A manager outside `except` that answers, the same one every time; nullptr when there is none.
  const Node* peer(const std::set<std::string>& except) const;
  // A voting member of any quorum service.
  bool is_member(const Node& node) const;
  // It carries a service that keeps its availability.
  bool is_scheduled(const Node& node) const;
  // A node outside `except` (ids) could take over what they run: scheduled, active, not known to
  // be away.
  bool others_take_work(const std::set<std::string>& except) const;
  // Services a node has been given: what was applied, else what it would get now.
  std::vector<std::string> services_of(const Node& node) const;
  // Services that anything may have left on the node: those of every host group, in provisioning
  // order.
  std::vector<std::string> services_of_any_group(const Node& node) const;

  // Of a node that is Dirty: what it may carry beyond `wanted`, in provisioning order.
  std::vector<std::string> strays(const Node& node, const std::vector<std::string>& wanted) const;

  // Nodes named by the request, each once; unknown names and repetitions are noted.
  NodeList named(fleet::Problems& problems, std::vector<Problem>& warnings) const;
  // Nodes the request's selector matches; all when it has none.
  NodeList selected(fleet::Problems& problems) const;

  // A stage over `nodes` with all managers outside it (and outside `absent`) as peers, with the
  // services of all of them.
  Stage stage(std::string name, const NodeList& nodes, RunVars vars,
              const std::set<std::string>& absent = {}) const;
  // The VIP, or the address of the only (else first) of `managers`. `vars`: of one of the managers,
  // with those of the request.
  std::string endpoint(const NodeList& managers, const Json& vars) const;
  RunVars run_vars(const NodeList& managers, const Node* peer, const Json& vars) const;

 private:
  const fleet::Snapshot& snapshot_;
  const catalog::Catalog& catalog_;
  const Request& request_;
  std::vector<fleet::View> views_;
};

std::set<std::string> ids_of(const NodeList& nodes);
std::vector<std::string> names_of(const NodeList& nodes);
void sort_by_name(NodeList& nodes);
// "n1, n2, n3 and 4 more"
std::string some_names(const NodeList& nodes);

// A target of a commission, as far as memberships are concerned.
struct Joining {
  const Node* node = nullptr;
  bool leaves_first = false;  // cleaned before anything else: a membership it still has ends
  bool joins = false;         // as a manager
};

// What a plan does to each quorum service, step by step, in the worst order. Fill `views` and
// return every reason why not.
std::vector<Problem> check_joining(const Context& context, const std::vector<Joining>& targets,
                                   const std::map<std::string, std::vector<std::string>>& services,
                                   std::map<std::string, QuorumView>& views);
std::vector<Problem> check_removing(const Context& context, const NodeList& leaving,
                                    bool powered_off, std::map<std::string, QuorumView>& views);

// Each of `managers` stops for a while and comes back, one after the other, or all of them at the
// same time. Managers that are in maintenance for another reason may stop at any moment.
std::vector<Problem> check_disrupting(const Context& context, const NodeList& managers,
                                      std::map<std::string, QuorumView>& views,
                                      bool together = false);

// Nodes in maintenance are left to whoever works on them: every target of `plan` that this kind of
// job may not touch meanwhile.
std::vector<Problem> check_maintenance(const Context& context, const Plan& plan);

// A node that carries other services afterwards, maybe with another role.
struct Reassigned {
  const Node* node = nullptr;
  fleet::Role before = fleet::Role::kWorker, after = fleet::Role::kWorker;
  std::vector<std::string> services;  // afterwards
};
// One after the other, in this order. An entry without a node's membership changing only stops the
// service for a while.
std::vector<Problem> check_reassigning(const Context& context, const std::vector<Reassigned>& nodes,
                                       std::map<std::string, QuorumView>& views);

// Warnings for what the plan's quorum views lose: tolerance, or the whole cluster.
void warn_about_loss(Plan& plan);

// No target's identity is in doubt, as far as this kind of work minds (fleet/recognize.h). Adds a
// warning when the controller is cut off from most of the fleet.
Status check_identity(const fleet::Snapshot& snapshot, const Request& request, Plan& plan);

// One per kind. They assume a parsed request.
Result<Plan> plan_commission(const Context& context);
Result<Plan> plan_decommission(const Context& context);
Result<Plan> plan_check(const Context& context);
Result<Plan> plan_verify(const Context& context);
Result<Plan> plan_observe(const Context& context);
Result<Plan> plan_availability(const Context& context);  // drain, pause, activate
Result<Plan> plan_update(const Context& context);
Result<Plan> plan_reassign(const Context& context);  // promote, demote, update of the group
Result<Plan> plan_replace(const Context& context);
Result<Plan> plan_maintenance_enter(const Context& context);
Result<Plan> plan_maintenance_exit(const Context& context);
Result<Plan> plan_reboot(const Context& context);

}  // namespace clusterctl::plan
