// decommission: [observe] → cleanup → [observe]; of nodes that are powered off for good: [observe]
// → forget on a survivor → [observe].
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/lifecycle.h"
#include "fleet/recognize.h"
#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Role;

class Decommission {
 public:
  explicit Decommission(const Context& context)
      : context_(context),
        request_(context.request()),
        dead_(request_.force && request_.powered_off) {}

  Result<Plan> make() {
    find_targets();
    if (!problems_.empty()) return problems_.refuse("nothing is decommissioned");
    order();
    check_state();
    check_managers();
    if (!problems_.empty()) return problems_.refuse("nothing is decommissioned");
    fill();
    return std::move(plan_);
  }

 private:
  void find_targets();
  void order();
  void check_state();
  void check_managers();
  void fill();
  void add_live_stages(const RunVars& vars);
  void add_dead_stages(const RunVars& vars);
  Lost lost(const Node& node) const;

  const Context& context_;
  const Request& request_;
  const bool dead_;  // nobody will ever answer there
  fleet::Problems problems_;
  NodeList targets_, leaving_managers_, staying_;
  const Node* peer_ = nullptr;
  Plan plan_;
};

void Decommission::find_targets() {
  if (!request_.nodes.empty()) {
    targets_ = context_.named(problems_, plan_.warnings);
  } else if (request_.selector.empty()) {
    problems_.add(Code::kInvalid, Problem{"no_nodes", "no nodes are named",
                                          "`clusterctl node decommission NAME…`", ""});
  } else {
    for (const Node* node : context_.selected(problems_)) {
      if (is_commissioned(*node)) targets_.push_back(node);
    }
    if (targets_.empty() && problems_.empty()) {
      problems_.add(Code::kNotFound, Problem{"no_nodes", "no commissioned node fits the selector",
                                             "`clusterctl node ls` shows the nodes", ""});
    }
  }
}

// Workers first, then managers; within a role as they were named, else by name.
void Decommission::order() {
  const auto manager = [&](const Node* n) {
    return role_of(context_.catalog(), *n) == Role::kManager;
  };
  std::stable_partition(targets_.begin(), targets_.end(),
                        [&](const Node* n) { return !manager(n); });
  for (const Node* node : targets_) {
    plan_.targets.push_back(node->id);
    plan_.roles[node->id] = manager(node) ? Role::kManager : Role::kWorker;
    if (manager(node) || context_.is_member(*node)) leaving_managers_.push_back(node);
  }
  staying_ = context_.managers(ids_of(targets_));
  peer_ = context_.peer(ids_of(targets_));
}

void Decommission::check_state() {
  for (const Node* node : targets_) {
    if (auto to = next(*node, fleet::Event::kDecommission); !to)
      problems_.add(to.error(), node->name);
    const bool disappeared = node->status.presence == fleet::Presence::kDisappeared;
    if (disappeared && !dead_) {
      problems_.add(
          Code::kConflict,
          Problem{"unreachable",
                  fmt::format("{} does not answer, so it cannot be cleaned", node->name),
                  fmt::format("bring it back and run `clusterctl node check {0}`; if it will never "
                              "answer, power it off: "
                              "`clusterctl node decommission {0} --force --i-have-powered-it-off`",
                              node->name),
                  node->name});
    }
    if (node->status.presence == fleet::Presence::kDiscovered && dead_) {
      plan_.warnings.push_back(
          {"was_seen",
           fmt::format("{} answered when it was last tried; it must be off before this begins",
                       node->name),
           fmt::format("without --force it is cleaned as well: `clusterctl node decommission {}`",
                       node->name),
           node->name});
    }
  }
}

void Decommission::check_managers() {
  const auto ids = ids_of(targets_);
  const NodeList others = context_.commissioned(ids);
  if (!leaving_managers_.empty() && staying_.empty() && !others.empty()) {
    const std::string message =
        fmt::format("no manager would be left for {} that {} commissioned: {}",
                    others.size() == 1 ? "the node" : fmt::format("{} nodes", others.size()),
                    others.size() == 1 ? "is" : "are", some_names(others));
    if (request_.force) {
      plan_.warnings.push_back({"last_manager", message,
                                "they will have to be decommissioned and commissioned again", ""});
    } else {
      problems_.add(
          Code::kConflict,
          Problem{"last_manager", message,
                  "name them in the same request, commission another manager first, or use --force",
                  ""});
    }
  }
  for (Problem& p : check_removing(context_, targets_, dead_, plan_.quorum))
    problems_.add(Code::kConflict, std::move(p));
  warn_about_loss(plan_);
  if (!peer_ && !staying_.empty()) {
    problems_.add(
        Code::kConflict,
        fleet::no_manager_to_ask(
            staying_,
            fmt::format("{} {} to be removed from the cluster through a manager, and none answers",
                        some_names(targets_), targets_.size() == 1 ? "has" : "have")));
  }
}

Lost Decommission::lost(const Node& node) const {
  Lost out{node.name, node.spec.addr, {}};
  for (const auto& [service, status] : node.status.services) {
    if (!status.member_id.empty()) out.ids[service] = status.member_id;
  }
  for (const fleet::View& view : context_.views()) {
    const fleet::SeenMember* member = view.of(node.id);
    if (member && !member->id.empty()) out.ids[view.service] = member->id;
  }
  return out;
}

void Decommission::fill() {
  plan_.kind = "decommission";
  plan_.powered_off = dead_;
  plan_.title = targets_.size() == 1 ? fmt::format("decommission {}", targets_[0]->name)
                                     : fmt::format("decommission {} nodes", targets_.size());
  if (dead_) plan_.title += " (powered off)";
  const NodeList& known = staying_.empty() ? leaving_managers_ : staying_;
  const Json vars =
      known.empty() ? request_.vars
                    : effective_vars(context_.snapshot(), context_.catalog(), *known[0],
                                     known[0]->status.applied ? known[0]->status.applied->host_group
                                                              : known[0]->spec.host_group,
                                     request_.vars);
  RunVars run = context_.run_vars(staying_, peer_, vars);
  run.cleanup_level = request_.level;
  if (run.endpoint.empty() && !leaving_managers_.empty())
    run.endpoint = leaving_managers_[0]->spec.addr;
  dead_ ? add_dead_stages(run) : add_live_stages(run);
}

void Decommission::add_live_stages(const RunVars& vars) {
  RunVars leaving = vars;
  leaving.leaving = names_of(targets_);
  const bool watch = !leaving_managers_.empty() && !staying_.empty();
  if (watch) {
    NodeList all = staying_;
    all.insert(all.end(), leaving_managers_.begin(), leaving_managers_.end());
    sort_by_name(all);
    plan_.stages.push_back(context_.stage("observe", all, vars));
  }
  Stage cleanup = context_.stage("cleanup", targets_, leaving);
  for (const Node* node : targets_) {
    // What was never verified, or failed in between, may carry anything.
    const bool unsure = !node->status.applied ||
                        has_condition(node->status, fleet::condition::kFailed) ||
                        has_condition(node->status, fleet::condition::kDirty);
    if (unsure) cleanup.services[node->id] = context_.services_of_any_group(*node);
  }
  cleanup.one_by_one = leaving_managers_.size() > 1;
  plan_.stages.push_back(std::move(cleanup));
  if (watch) plan_.stages.push_back(context_.stage("observe", staying_, vars, ids_of(targets_)));
}

void Decommission::add_dead_stages(const RunVars& vars) {
  const auto gone = ids_of(targets_);
  if (!peer_) {
    plan_.warnings.push_back(
        {"nothing_to_forget", "no manager is left that would have to forget anything", "", ""});
    return;
  }
  const bool watch = !leaving_managers_.empty();
  if (watch) plan_.stages.push_back(context_.stage("observe", staying_, vars, gone));
  RunVars forget = vars;
  for (const Node* node : targets_) forget.lost.push_back(lost(*node));
  plan_.stages.push_back(context_.stage("forget", {peer_}, std::move(forget), gone));
  if (watch) plan_.stages.push_back(context_.stage("observe", staying_, vars, gone));
}

}  // namespace

Result<Plan> plan_decommission(const Context& context) {
  return Decommission(context).make();
}

}  // namespace clusterctl::plan
