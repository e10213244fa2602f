// commission: check → [observe] → site → verify, managers first, after a cleanup of nodes that
// still owe one.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/lifecycle.h"
#include "fleet/patterns.h"
#include "fleet/placement.h"
#include "fleet/placement_registry.h"
#include "fleet/words.h"
#include "plan/candidates.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Candidate;
using fleet::Role;

class Commission {
 public:
  explicit Commission(const Context& context)
      : context_(context), request_(context.request()), catalog_(context.catalog()) {}

  Result<Plan> make() {
    find_targets();
    for (const Node* node : targets_) add_candidate(*node);
    check_nodes();
    // The rules of the whole say nothing true while half of the request is unknown.
    if (problems_.empty()) {
      order();
      check_cluster();
      check_rules();
    }
    if (!problems_.empty()) return problems_.refuse("nothing is commissioned");
    fill();
    return std::move(plan_);
  }

 private:
  void find_targets();
  void add_candidate(const Node& node);
  void order();
  void check_nodes();
  void check_cluster();
  void check_unfinished();
  void check_rules();
  void fill();
  void add_stages(const RunVars& vars);
  Stage stage(const std::string& name, const RunVars& vars) const;
  std::string title() const;
  bool owes_cleanup(const Candidate& c) const;
  bool adds_managers() const { return !new_managers_.empty(); }

  const Context& context_;
  const Request& request_;
  const catalog::Catalog& catalog_;
  fleet::Problems problems_;
  NodeList targets_;                   // in the order of work
  std::vector<Candidate> candidates_;  // in the order of targets_
  NodeList new_managers_;
  NodeList unclean_;
  NodeList staying_;  // managers outside the request
  const Node* peer_ = nullptr;
  Plan plan_;
};

void Commission::find_targets() {
  if (!request_.nodes.empty()) {
    targets_ = context_.named(problems_, plan_.warnings);
    return;
  }
  if (request_.host_group.empty() && request_.selector.empty()) {
    problems_.add(
        Code::kInvalid,
        Problem{
            "no_nodes", "no nodes and no host group are named",
            "`clusterctl node commission NAME…` or `clusterctl node commission --host-group=GROUP`",
            ""});
    return;
  }
  for (const Node* node : context_.selected(problems_)) {
    const bool wanted = request_.host_group.empty() ? !node->spec.host_group.empty()
                                                    : node->spec.host_group == request_.host_group;
    if (wanted && !is_commissioned(*node) &&
        node->spec.acceptance == fleet::Acceptance::kAccepted &&
        node->spec.allocation == fleet::Allocation::kInService) {
      targets_.push_back(node);
    }
  }
  if (!targets_.empty() || !problems_.empty()) return;
  const bool known = request_.host_group.empty() || catalog_.host_group(request_.host_group);
  problems_.add(
      known ? Code::kNotFound : Code::kInvalid,
      Problem{known ? "no_nodes" : "unknown_group",
              known ? fmt::format("no accepted node that is not commissioned {}",
                                  request_.host_group.empty()
                                      ? "fits the selector"
                                      : "has the host group " + request_.host_group)
                    : fmt::format("there is no host group {}", fleet::shown(request_.host_group)),
              known ? "`clusterctl node ls` shows the nodes; name them to put them into a group: "
                      "`clusterctl node "
                      "commission NAME --host-group=GROUP`"
                    : "one of: " + join(catalog_.host_group_names(), ", "),
              ""});
}

void Commission::add_candidate(const Node& node) {
  Candidate c;
  c.node = &node;
  c.host_group = request_.host_group.empty() ? node.spec.host_group : request_.host_group;
  if (c.host_group.empty()) {
    problems_.add(Code::kInvalid,
                  Problem{"no_group", fmt::format("{} has no host group", node.name),
                          fmt::format("`clusterctl node commission {} --host-group={}`", node.name,
                                      join(catalog_.host_group_names(), "|")),
                          node.name});
    return;
  }
  if (!catalog_.host_group(c.host_group)) {
    const std::string near = nearest(c.host_group, catalog_.host_group_names());
    problems_.add(
        Code::kInvalid,
        Problem{"unknown_group",
                fmt::format("{}: there is no host group {}", node.name, fleet::shown(c.host_group)),
                (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) +
                    "one of: " + join(catalog_.host_group_names(), ", "),
                node.name});
    return;
  }
  // What the node was given for another group says nothing about this one.
  const bool own = node.spec.host_group.empty() || node.spec.host_group == c.host_group;
  c.group_manages = catalog_.host_group(c.host_group)->manager;
  c.vars = effective_vars(context_.snapshot(), catalog_, node, c.host_group, request_.vars);
  Json own_vars = node.spec.vars;
  for (const auto& [name, value] : request_.vars.items()) own_vars[name] = value;
  const auto given = fleet::with_variable_forms(
      node, !request_.capabilities.empty() || !own ? request_.capabilities : node.spec.capabilities,
      catalog_.capabilities_for(c.host_group, {}), c.vars, own_vars);
  plan_.changes[node.id] = {c.host_group, given,
                            request_.availability.value_or(node.spec.availability)};
  c.capabilities = catalog_.capabilities_for(c.host_group, given);
  c.role = catalog_.role(c.host_group, c.capabilities);
  c.services = catalog_.services_for(c.host_group, c.capabilities, c.vars);
  add_catalog_facts(catalog_, c);
  candidates_.push_back(std::move(c));
}

// Managers first; within a role as they were named, else by name.
void Commission::order() {
  if (request_.nodes.empty()) {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.node->name < b.node->name; });
  }
  std::stable_partition(candidates_.begin(), candidates_.end(),
                        [](const Candidate& c) { return c.role == Role::kManager; });
  // Who is named as the first manager begins the cluster, if there is none.
  std::stable_partition(candidates_.begin(), candidates_.end(), [](const Candidate& c) {
    const auto name = c.vars.find("ucp_bootstrap_node_name");
    return c.role == Role::kManager && name != c.vars.end() && *name == c.node->name;
  });
  targets_.clear();
  for (const Candidate& c : candidates_) {
    targets_.push_back(c.node);
    plan_.targets.push_back(c.node->id);
    plan_.roles[c.node->id] = c.role;
    if (c.role == Role::kManager) new_managers_.push_back(c.node);
  }
  staying_ = context_.managers(ids_of(targets_));
  peer_ = context_.peer(ids_of(targets_));
}

void Commission::check_nodes() {
  for (const Node* node : targets_) {
    if (auto to = next(*node, fleet::Event::kCommission); !to)
      problems_.add(to.error(), node->name);
    if (node->status.presence == fleet::Presence::kDisappeared) {
      plan_.warnings.push_back(
          {"not_seen", fmt::format("{} did not answer when it was last tried", node->name),
           fmt::format("`clusterctl node check {}` tries again", node->name), node->name});
    }
  }
}

// A cleanup is owed: an earlier one failed, it was removed while it was off, or it is a member that
// shall be a worker now.
bool Commission::owes_cleanup(const Candidate& c) const {
  const fleet::NodeStatus& status = c.node->status;
  return has_condition(status, fleet::condition::kNotCleaned) ||
         has_condition(status, fleet::condition::kDirty) ||
         (c.role == Role::kWorker && context_.is_member(*c.node));
}

void Commission::check_cluster() {
  std::map<std::string, std::vector<std::string>> services;
  std::vector<Joining> joining;
  for (const Candidate& c : candidates_) {
    services[c.node->id] = c.services;
    joining.push_back({c.node, owes_cleanup(c), c.role == Role::kManager});
    if (joining.back().leaves_first) unclean_.push_back(c.node);
  }
  for (Problem& p : check_joining(context_, joining, services, plan_.quorum))
    problems_.add(Code::kConflict, std::move(p));
  if (!adds_managers() || !staying_.empty()) return;
  check_unfinished();
  // Members, but no manager to join through: a further manager would begin a second cluster.
  const auto targets = ids_of(targets_);
  std::set<std::string> outside;
  for (const fleet::View& view : context_.views()) {
    for (const fleet::SeenMember& m : view.members) {
      if (!targets.count(m.node)) outside.insert(m.name);
    }
  }
  if (outside.empty()) return;
  problems_.add(Code::kConflict,
                Problem{"no_reachable_manager",
                        fmt::format("a cluster exists ({}), and none of its managers is in service",
                                    join({outside.begin(), outside.end()}, ", ")),
                        "`clusterctl status` shows its members; name them as well, or decommission "
                        "what is left of it",
                        ""});
}

// Before the first manager is verified, a half-made one that is not in the request may already have
// begun a cluster.
void Commission::check_unfinished() {
  for (const Node* node : context_.commissioned(ids_of(targets_))) {
    if (role_of(catalog_, *node) != Role::kManager) continue;
    problems_.add(
        Code::kConflict,
        Problem{"unfinished_manager",
                fmt::format("{} is {}: it may have begun a cluster that would get a rival",
                            node->name, word(node->status.lifecycle)),
                fmt::format(
                    "wait for its job, name it as well, or `clusterctl node decommission {}` first",
                    node->name),
                node->name});
  }
}

void Commission::check_rules() {
  const fleet::Placement placement = placement_for(context_, candidates_, staying_, peer_);
  fleet::Findings findings = check_placement(placement);
  for (const Problem& p : findings.problems.list()) problems_.add(Code::kRefused, p);
  plan_.warnings.insert(plan_.warnings.end(), findings.warnings.begin(), findings.warnings.end());
}

std::string Commission::title() const {
  if (candidates_.size() == 1)
    return fmt::format("commission {} as {}", candidates_[0].node->name, candidates_[0].host_group);
  std::map<std::string, int> groups;
  for (const Candidate& c : candidates_) ++groups[c.host_group];
  if (groups.size() == 1)
    return fmt::format("commission {} nodes as {}", candidates_.size(), groups.begin()->first);
  std::vector<std::string> parts;
  for (const auto& [group, n] : groups) parts.push_back(fmt::format("{} {}", n, group));
  return fmt::format("commission {} nodes ({})", candidates_.size(), join(parts, ", "));
}

Stage Commission::stage(const std::string& name, const RunVars& vars) const {
  Stage out = context_.stage(name, targets_, vars);
  for (const Candidate& c : candidates_) out.services[c.node->id] = c.services;
  out.one_by_one = new_managers_.size() > 1;
  return out;
}

void Commission::fill() {
  plan_.kind = "commission";
  plan_.title = title();
  NodeList members = staying_;
  members.insert(members.end(), new_managers_.begin(), new_managers_.end());
  const Json vars = !new_managers_.empty() ? candidates_[0].vars
                    : staying_.empty()
                        ? Json::object()
                        : effective_vars(context_.snapshot(), catalog_, *staying_[0],
                                         staying_[0]->status.applied->host_group, request_.vars);
  RunVars run = context_.run_vars(members, peer_, vars);
  // No manager stays: there is no cluster, or all that is left of one is in this request, and the
  // role looks for it first.
  if (adds_managers() && staying_.empty()) run.initiator = new_managers_[0]->name;
  add_stages(run);
}

void Commission::add_stages(const RunVars& vars) {
  const bool changes_members =
      adds_managers() || std::any_of(unclean_.begin(), unclean_.end(),
                                     [&](const Node* n) { return context_.is_member(*n); });
  const bool observe = changes_members && !staying_.empty();
  const auto add_observe = [&] {
    if (observe)
      plan_.stages.push_back(context_.stage("observe", staying_, vars, ids_of(targets_)));
  };
  if (!unclean_.empty()) {
    add_observe();
    RunVars leaving = context_.run_vars(staying_, peer_, Json::object());
    leaving.endpoint = vars.endpoint;
    leaving.leaving = names_of(unclean_);
    Stage cleanup = context_.stage("cleanup", unclean_, std::move(leaving), ids_of(targets_));
    for (const Node* node : unclean_)
      cleanup.services[node->id] = context_.services_of_any_group(*node);
    plan_.stages.push_back(std::move(cleanup));
  }
  plan_.stages.push_back(stage("check", vars));
  plan_.stages.back().one_by_one = false;
  if (unclean_.empty()) add_observe();
  plan_.stages.push_back(stage("site", vars));
  plan_.stages.push_back(stage("verify", vars));
  plan_.stages.back().one_by_one = false;
  if (request_.keep_on_failure) return;
  plan_.cleanup = stage("cleanup", vars);
  plan_.cleanup->vars.leaving = names_of(targets_);
}

}  // namespace

Result<Plan> plan_commission(const Context& context) {
  return Commission(context).make();
}

std::optional<Stage> cleanup_for(const Plan& plan, const fleet::Snapshot& snapshot,
                                 const std::vector<std::string>& failed) {
  if (!plan.cleanup || failed.empty()) return std::nullopt;
  const auto is_failed = [&](const std::string& id) {
    return std::find(failed.begin(), failed.end(), id) != failed.end();
  };
  const auto name_of = [&](const std::string& id) {
    const auto it = snapshot.nodes.find(id);
    return it == snapshot.nodes.end() ? id : it->second.name;
  };
  Stage out = *plan.cleanup;
  out.nodes.clear();
  out.vars.leaving.clear();
  std::string joined;  // a manager of this plan that did not fail
  for (const std::string& id : plan.cleanup->nodes) {
    const auto role = plan.roles.find(id);
    const bool manager = role != plan.roles.end() && role->second == Role::kManager;
    if (is_failed(id)) {
      out.nodes.push_back(id);
      out.vars.leaving.push_back(name_of(id));
      std::erase(out.vars.managers, name_of(id));
    } else if (manager) {
      out.peers.push_back(id);
      if (joined.empty()) joined = name_of(id);
    } else {
      out.services.erase(id);
    }
  }
  if (out.vars.peer.empty()) out.vars.peer = joined;
  // When the first manager itself failed there is no cluster; else the others need not look for one
  // to begin.
  out.vars.initiator.clear();
  if (out.nodes.empty()) return std::nullopt;
  return out;
}

}  // namespace clusterctl::plan
