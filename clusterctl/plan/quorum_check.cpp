// Walks a plan's changes of membership step by step through every quorum service and asks
// fleet/quorum.h about each.
#include <algorithm>

#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Count;
using fleet::StepCase;

// One service, as it is after the steps taken so far.
class Walk {
 public:
  Walk(const Context& context, const fleet::View& view, std::vector<Problem>& problems)
      : request_(context.request()),
        view_(view),
        count_(view.count()),
        missing_(view.missing()),
        problems_(problems) {
    for (const auto& [id, node] : context.snapshot().nodes) {
      const fleet::SeenMember* member = view.of(id);
      if (member && member->reachable && node.status.maintenance) in_maintenance_.insert(node.name);
    }
  }

  void others_stay(bool stay) { others_stay_ = stay; }
  // These members are gone for good, whatever the observation says.
  void mark_dead(const NodeList& nodes) {
    for (const Node* node : nodes) {
      const fleet::SeenMember* member = view_.of(node->id);
      if (!member || !member->reachable) continue;
      --count_.reachable;
      missing_.push_back(node->name);
      in_maintenance_.erase(node->name);
    }
    std::sort(missing_.begin(), missing_.end());
  }
  // Those of them that the same work takes out are back before the next one goes.
  void come_back(const NodeList& nodes) {
    for (const Node* node : nodes) {
      if (node->status.maintenance && node->status.maintenance->kind == "reboot")
        in_maintenance_.erase(node->name);
    }
  }
  // These stop in the same request, at the same time.
  void stop_along(const NodeList& nodes) {
    for (const Node* node : nodes) {
      const fleet::SeenMember* member = view_.of(node->id);
      if (member && member->reachable) along_.insert(node->name);
    }
  }
  void take(fleet::Step step, const Node& node) {
    StepCase c;
    c.service = view_.service;
    c.node = node.name;
    c.step = step;
    c.count = count_;
    c.force = request_.force;
    c.allow_outage = request_.allow_outage;
    c.others_stay = others_stay_;
    c.missing = missing_;
    for (const std::string& name : in_maintenance_) {
      if (name != node.name && !along_.count(name)) c.in_maintenance.push_back(name);
    }
    for (const std::string& name : along_) {
      if (name != node.name) c.along.push_back(name);
    }
    // What follows a step that is not allowed is not worth saying.
    if (auto problem = check_step(c); problem && !stopped_) {
      problems_.push_back(std::move(*problem));
      stopped_ = true;
    }
    count_ = after(step, count_);
    if (step == fleet::Step::kRemoveDead) std::erase(missing_, node.name);
    if (step == fleet::Step::kRemove) in_maintenance_.erase(node.name);
  }
  void clear() { count_ = {}; }
  QuorumView result() const {
    const Count before = view_.count();
    return {before.total, before.reachable, count_.total, count_.tolerates()};
  }
  const Count& count() const { return count_; }

 private:
  const Request& request_;
  const fleet::View& view_;
  Count count_;
  std::vector<std::string> missing_;
  std::set<std::string> in_maintenance_, along_;  // names
  bool others_stay_ = true;
  bool stopped_ = false;
  std::vector<Problem>& problems_;
};

bool carries(const std::map<std::string, std::vector<std::string>>& services, const Node& node,
             const std::string& service) {
  const auto it = services.find(node.id);
  return it != services.end() &&
         std::find(it->second.begin(), it->second.end(), service) != it->second.end();
}

// What the plan makes of its targets, as they are now.
std::vector<Reassigned> moves_of(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                                 const Plan& plan) {
  std::vector<Reassigned> out;
  for (const std::string& id : plan.targets) {
    const auto node = snapshot.nodes.find(id);
    const auto wish = plan.changes.find(id);
    if (node == snapshot.nodes.end() || wish == plan.changes.end()) continue;
    Reassigned r;
    r.node = &node->second;
    r.before = role_of(catalog, node->second).value_or(fleet::Role::kWorker);
    r.after =
        catalog.role(wish->second.host_group,
                     catalog.capabilities_for(wish->second.host_group, wish->second.capabilities));
    for (const Stage& stage : plan.stages) {
      const auto services = stage.services.find(id);
      if (stage.name == "site" && stage.nodes == std::vector<std::string>{id} &&
          services != stage.services.end())
        r.services = services->second;
    }
    out.push_back(std::move(r));
  }
  return out;
}

std::vector<Problem> quorum_problems(const Result<Plan>& plan) {
  std::vector<Problem> out;
  if (plan) return out;
  for (const Problem& p : plan.error().problems) {
    if (p.code == "quorum") out.push_back(p);
  }
  return out;
}

}  // namespace

std::vector<Problem> check_joining(const Context& context, const std::vector<Joining>& targets,
                                   const std::map<std::string, std::vector<std::string>>& services,
                                   std::map<std::string, QuorumView>& views) {
  std::vector<Problem> problems;
  for (const fleet::View& view : context.views()) {
    Walk walk(context, view, problems);
    // A target that leaves comes back: nobody is left alone.
    walk.others_stay(false);
    bool touched = false;
    for (const Joining& target : targets) {
      const fleet::SeenMember* member = view.of(target.node->id);
      if (!member || !target.leaves_first) continue;
      touched = true;
      walk.take(member->reachable ? fleet::Step::kRemove : fleet::Step::kRemoveDead, *target.node);
    }
    const catalog::Service* service = context.catalog().service(view.service);
    const bool by_capability = service && !service->on.capabilities.empty();
    for (const Joining& target : targets) {
      const bool joins = target.joins || by_capability;
      if (!joins || !carries(services, *target.node, view.service)) continue;
      touched = true;
      // A member already (a broken-off commission): converging it changes no count.
      if (view.of(target.node->id) && !target.leaves_first) continue;
      walk.take(walk.count().total == 0 ? fleet::Step::kFirst : fleet::Step::kAdd, *target.node);
    }
    if (touched) views[view.service] = walk.result();
  }
  return problems;
}

std::vector<Problem> check_removing(const Context& context, const NodeList& leaving,
                                    bool powered_off, std::map<std::string, QuorumView>& views) {
  std::vector<Problem> problems;
  const auto ids = ids_of(leaving);
  const bool others_stay = !context.commissioned(ids).empty();
  const bool managers_stay = !context.managers(ids).empty();
  for (const fleet::View& view : context.views()) {
    NodeList live, dead;
    for (const Node* node : leaving) {
      const fleet::SeenMember* member = view.of(node->id);
      if (member) (member->reachable && !powered_off ? live : dead).push_back(node);
    }
    if (live.empty() && dead.empty()) continue;
    Walk walk(context, view, problems);
    walk.others_stay(others_stay);
    const bool whole = static_cast<int>(live.size() + dead.size()) == view.count().total;
    if (!others_stay || (whole && !managers_stay)) {
      walk.clear();  // everything goes, or the rule of the last manager has decided
    } else {
      if (powered_off) walk.mark_dead(dead);
      // The worst order: those that answer first, of them those that stand by last. Then it holds
      // in whatever order the playbook takes them.
      std::stable_partition(live.begin(), live.end(),
                            [](const Node* n) { return !n->status.maintenance; });
      for (const Node* node : live) walk.take(fleet::Step::kRemove, *node);
      for (const Node* node : dead) walk.take(fleet::Step::kRemoveDead, *node);
    }
    views[view.service] = walk.result();
  }
  return problems;
}

std::vector<Problem> check_disrupting(const Context& context, const NodeList& managers,
                                      std::map<std::string, QuorumView>& views, bool together) {
  std::vector<Problem> problems;
  for (const fleet::View& view : context.views()) {
    for (const Node* node : managers) {
      const fleet::SeenMember* member = view.of(node->id);
      // One that does not answer now takes nothing away while it is worked on.
      if (!member || !member->reachable) continue;
      Walk walk(context, view, problems);
      together ? walk.stop_along(managers) : walk.come_back(managers);
      walk.take(fleet::Step::kDisrupt, *node);
      const Count now = view.count();
      views[view.service] = {now.total, now.reachable, now.total, now.tolerates()};
    }
  }
  return problems;
}

std::vector<Problem> check_reassigning(const Context& context, const std::vector<Reassigned>& nodes,
                                       std::map<std::string, QuorumView>& views) {
  std::vector<Problem> problems;
  for (const fleet::View& view : context.views()) {
    Walk walk(context, view, problems);
    bool touched = false;
    for (const Reassigned& r : nodes) {
      const fleet::SeenMember* member = view.of(r.node->id);
      const catalog::Service* service = context.catalog().service(view.service);
      const bool by_capability = service && !service->on.capabilities.empty();
      const bool stays =
          (r.after == fleet::Role::kManager || by_capability) &&
          std::find(r.services.begin(), r.services.end(), view.service) != r.services.end();
      if (!member && !stays) continue;
      touched = true;
      if (!stays) {
        walk.take(member->reachable ? fleet::Step::kRemove : fleet::Step::kRemoveDead, *r.node);
      } else if (!member) {
        walk.take(walk.count().total == 0 ? fleet::Step::kFirst : fleet::Step::kAdd, *r.node);
      } else if (r.before == r.after && member->reachable) {
        Walk(context, view, problems).take(fleet::Step::kDisrupt, *r.node);
      }
    }
    if (touched) views[view.service] = walk.result();
  }
  return problems;
}

Status recheck_quorum(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                      const Request& request, const Plan& plan) {
  const Context context(snapshot, catalog, request);
  NodeList targets;
  std::vector<Joining> joining;
  std::map<std::string, std::vector<std::string>> services;
  std::set<std::string> cleaned;
  for (const Stage& stage : plan.stages) {
    if (stage.name == "cleanup") cleaned.insert(stage.nodes.begin(), stage.nodes.end());
    if (stage.name == "site") services = stage.services;
  }
  for (const std::string& id : plan.targets) {
    const auto it = snapshot.nodes.find(id);
    if (it == snapshot.nodes.end()) continue;
    const auto role = plan.roles.find(id);
    targets.push_back(&it->second);
    joining.push_back({&it->second, cleaned.count(id) != 0,
                       role != plan.roles.end() && role->second == fleet::Role::kManager});
  }
  std::map<std::string, QuorumView> views;
  std::vector<Problem> problems;
  const bool moves = reassigns(request);
  if (moves) {
    problems = check_reassigning(context, moves_of(snapshot, catalog, plan), views);
  } else if (plan.kind == "update" || plan.kind == "reboot") {
    problems = check_disrupting(context, targets, views);
  }
  if (plan.kind == "replace") problems = quorum_problems(make_plan(snapshot, catalog, request));
  if (plan.kind == "maintenance-enter") problems = check_disrupting(context, targets, views, true);
  if (plan.kind == "commission") problems = check_joining(context, joining, services, views);
  if (plan.kind == "decommission")
    problems = check_removing(context, targets,
                              plan.powered_off || (request.force && request.powered_off), views);
  if (problems.empty()) return {};
  Error error{Code::kConflict, "quorum_lost", problems[0].message, problems[0].hint, problems};
  return fail(std::move(error));
}

}  // namespace clusterctl::plan
