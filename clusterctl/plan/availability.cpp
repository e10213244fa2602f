// drain, pause, activate: one stage that sets the availability in the scheduler, through a manager.
#include <fmt/format.h>

#include <algorithm>

#include "fleet/recognize.h"
#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;

bool serves(const Node& node) {
  const bool in_service = node.status.lifecycle == fleet::Lifecycle::kAllocated ||
                          node.status.lifecycle == fleet::Lifecycle::kMaintenance;
  return in_service && node.status.applied;
}

class SetAvailability {
 public:
  explicit SetAvailability(const Context& context)
      : context_(context),
        kind_(context.request().kind),
        to_(availability_of(kind_).value_or(Availability::kActive)) {}

  Result<Plan> make() {
    find_targets();
    for (const Node* node : targets_) check(*node);
    if (problems_.empty()) check_way();
    if (!problems_.empty())
      return problems_.refuse(fmt::format("nothing is {}", kind_ == "drain"   ? "drained"
                                                           : kind_ == "pause" ? "paused"
                                                                              : "activated"));
    fill();
    return std::move(plan_);
  }

 private:
  void find_targets() {
    const Request& r = context_.request();
    if (!r.nodes.empty()) {
      targets_ = context_.named(problems_, plan_.warnings);
      return;
    }
    if (r.selector.empty() && r.host_group.empty()) {
      problems_.add(Code::kInvalid, Problem{"no_nodes", "no nodes are named",
                                            fmt::format("`clusterctl node {} NAME…`", kind_), ""});
      return;
    }
    for (const Node* node : context_.selected(problems_)) {
      const bool in_group =
          r.host_group.empty() ||
          (node->status.applied && node->status.applied->host_group == r.host_group);
      if (serves(*node) && in_group) targets_.push_back(node);
    }
    if (targets_.empty() && problems_.empty()) {
      problems_.add(Code::kNotFound,
                    Problem{"no_nodes", "no commissioned node fits",
                            "`clusterctl node ls` shows the nodes and their groups", ""});
    }
  }

  void check(const Node& node) {
    if (!serves(node)) {
      problems_.add(Code::kConflict,
                    Problem{"transition",
                            fmt::format("{} is {} and has no place in a scheduler", node.name,
                                        fleet::word(node.status.lifecycle)),
                            fmt::format("`clusterctl node commission {}` gives it one", node.name),
                            node.name});
    } else if (!context_.is_scheduled(node)) {
      problems_.add(Code::kConflict,
                    Problem{"no_scheduler",
                            fmt::format("{} carries no service that schedules work", node.name),
                            "`clusterctl node ls -o wide` shows the services", node.name});
    } else if (node.status.presence == fleet::Presence::kDisappeared &&
               to_ == Availability::kDrain) {
      plan_.warnings.push_back(
          {"not_seen",
           fmt::format("{} did not answer when it was last tried: nobody may be able to say that "
                       "its tasks have stopped",
                       node.name),
           "", node.name});
    }
  }

  // Somebody has to be asked, and the tasks have to go somewhere.
  void check_way() {
    const NodeList managers = context_.managers();
    const bool through_itself =
        managers.size() == 1 && targets_.size() == 1 && targets_[0] == managers[0];
    if (!through_itself && !context_.peer({})) {
      problems_.add(
          Code::kConflict,
          fleet::no_manager_to_ask(managers, "no manager answers through which it could be done"));
    }
    if (to_ == Availability::kDrain) check_workers();
    if (to_ == Availability::kDrain && !context_.others_take_work(ids_of(targets_))) {
      plan_.warnings.push_back(
          {"no_place", "no active node is left: what runs on the drained ones has nowhere to go",
           "`clusterctl node activate NAME` makes a place", ""});
    }
  }

  void check_workers() {
    std::vector<std::string> ids;
    for (const Node* node : targets_) ids.push_back(node->id);
    const Budget left = budget_for(context_.snapshot(), context_.catalog(),
                                   context_.request().max_unavailable, ids);
    if (!left.fits()) problems_.add(Code::kConflict, over_budget(left, context_.snapshot()));
  }

  void fill() {
    plan_.kind = kind_;
    plan_.title = targets_.size() == 1 ? fmt::format("{} {}", kind_, targets_[0]->name)
                                       : fmt::format("{} {} nodes", kind_, targets_.size());
    std::map<std::string, Availability> availability;
    for (const Node* node : targets_) {
      plan_.targets.push_back(node->id);
      plan_.roles[node->id] = role_of(context_.catalog(), *node).value_or(fleet::Role::kWorker);
      plan_.changes[node->id] = {node->spec.host_group, node->spec.capabilities, to_, {}, {}};
      availability[node->id] = to_;
    }
    Stage stage = availability_stage(context_.snapshot(), context_.catalog(), kind_, availability);
    stage.nodes = plan_.targets;  // in the order in which they were named
    stage.vars.drain_deadline = context_.request().deadline;
    plan_.stages.push_back(std::move(stage));
  }

  const Context& context_;
  const std::string kind_;
  const Availability to_;
  fleet::Problems problems_;
  NodeList targets_;
  Plan plan_;
};

}  // namespace

Result<Plan> plan_availability(const Context& context) {
  return SetAvailability(context).make();
}

fleet::Availability last_availability(const fleet::Node& node) {
  return node.status.applied ? node.status.applied->availability : node.spec.availability;
}

Stage availability_stage(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                         const std::string& name,
                         const std::map<std::string, Availability>& availability,
                         const std::set<std::string>& not_through) {
  const Request none;
  const Context context(snapshot, catalog, none);
  NodeList nodes;
  std::set<std::string> except = not_through;
  for (const auto& [id, wanted] : availability) {
    const auto it = snapshot.nodes.find(id);
    if (it == snapshot.nodes.end()) continue;
    nodes.push_back(&it->second);
    except.insert(id);
  }
  sort_by_name(nodes);
  const NodeList managers = context.managers();
  const Json vars = managers.empty() ? Json::object()
                                     : effective_vars(snapshot, catalog, *managers[0],
                                                      managers[0]->status.applied->host_group);
  Stage out = context.stage(name, nodes, context.run_vars(managers, context.peer(except), vars));
  out.playbook = "availability.yml";
  // Where every manager is a target they are asked through each other: only through those that
  // answer.
  std::erase_if(out.vars.managers, [&](const std::string& name) {
    return snapshot.by_name(name)->status.presence == fleet::Presence::kDisappeared;
  });
  out.availability = availability;
  return out;
}

}  // namespace clusterctl::plan
