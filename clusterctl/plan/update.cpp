// update: converge without tearing down. check → observe → batches; a batch is
// [drain] → site → verify → [restore]. Managers are batches of one, each after an observation of
// its own; then workers, never more than the budget at once. What is between the batches (the gate)
// is job/rolling.h. Narrowed to some services, only these are checked, converged and verified
// (all of a node that is not in order is verified).
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/lifecycle.h"
#include "fleet/recognize.h"
#include "fleet/words.h"
#include "plan/context.h"
#include "plan/drift.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Role;

class Update {
 public:
  explicit Update(const Context& context)
      : context_(context),
        request_(context.request()),
        catalog_(context.catalog()),
        workers_(worker_state(context.snapshot(), context.catalog())) {}

  Result<Plan> make() {
    check_services();
    if (problems_.empty()) find_targets();
    check_targets();
    if (problems_.empty()) {
      sort_targets();
      check_managers();
      cut_batches();
    }
    if (!problems_.empty()) return problems_.refuse("nothing is updated");
    fill();
    return std::move(plan_);
  }

 private:
  void check_services();
  void find_targets();
  void check_targets();
  void check_narrowed(const Node& node);
  void sort_targets();
  void check_managers();
  void cut_batches();
  void fill();
  void add_batch(const NodeList& batch, bool watched);
  Stage stage(const std::string& name, const NodeList& nodes) const;
  Json vars_of(const Node& node) const;
  std::vector<std::string> services_wanted(const Node& node) const;
  std::vector<std::string> services_after(const Node& node) const;
  bool is_meant(const std::string& service) const;
  bool shall_drain(const Node& node) const;
  std::map<std::string, Availability> to_drain(const NodeList& batch);

  const Context& context_;
  const Request& request_;
  const catalog::Catalog& catalog_;
  const WorkerState workers_;
  fleet::Problems problems_;
  NodeList targets_;            // in the order of work
  NodeList managers_, others_;  // of the targets; members of any majority are with the managers
  std::vector<NodeList> batches_;
  Plan plan_;
};

bool can_be_updated(const Node& node) {
  return next(node, fleet::Event::kMaintain) && node.status.applied;
}

bool in_order(const Node* node) {
  const auto& conditions = node->status.conditions;
  return node->status.lifecycle == fleet::Lifecycle::kAllocated &&
         std::all_of(conditions.begin(), conditions.end(), [](const fleet::Condition& c) {
           return c.type == fleet::condition::kDrifted;
         });
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Does the update concern this service, where it is?
bool Update::is_meant(const std::string& service) const {
  return request_.services.empty() || has(request_.services, service);
}

void Update::check_services() {
  std::vector<std::string> known;
  for (const catalog::Service& s : catalog_.services()) known.push_back(s.name);
  for (const std::string& name : request_.services) {
    if (has(known, name)) continue;
    const std::string near = nearest(name, known);
    problems_.add(Code::kInvalid,
                  Problem{"unknown_service", fmt::format("there is no service {}", name),
                          near.empty() ? "the services are: " + join(known, ", ")
                                       : fmt::format("did you mean {}? The services are: {}", near,
                                                     join(known, ", ")),
                          ""});
  }
}

void Update::find_targets() {
  if (!request_.nodes.empty()) {
    targets_ = context_.named(problems_, plan_.warnings);
    return;
  }
  for (const Node* node : context_.selected(problems_)) {
    const bool in_group =
        request_.host_group.empty() ||
        (node->status.applied && node->status.applied->host_group == request_.host_group);
    if (!can_be_updated(*node) || !in_group) continue;
    const auto services = services_after(*node);
    if (std::none_of(services.begin(), services.end(),
                     [&](const std::string& s) { return is_meant(s); }))
      continue;
    if (node->status.maintenance) {
      plan_.warnings.push_back(
          {"left_out", fmt::format("{} is in maintenance and left out", node->name),
           fmt::format("`clusterctl node maintenance exit {}`", node->name), node->name});
      continue;
    }
    if (node->status.presence == fleet::Presence::kDisappeared) {
      plan_.warnings.push_back(
          {"left_out", fmt::format("{} does not answer and is left out", node->name),
           fmt::format("`clusterctl node check {0}`, then `clusterctl node update {0}`",
                       node->name),
           node->name});
      continue;
    }
    targets_.push_back(node);
  }
  if (targets_.empty() && problems_.empty()) {
    const std::string what = request_.services.empty() ? "there is no commissioned node to update"
                                                       : "no commissioned node carries " +
                                                             join(request_.services, " or ");
    problems_.add(Code::kNotFound,
                  Problem{"no_nodes", what, "`clusterctl node ls` shows the nodes", ""});
  }
}

void Update::check_targets() {
  for (const Node* node : targets_) {
    if (auto to = next(*node, fleet::Event::kMaintain); !to) {
      problems_.add(to.error(), node->name);
    } else if (!node->status.applied) {
      problems_.add(
          Code::kConflict,
          Problem{"transition", fmt::format("{} carries nothing that was verified", node->name),
                  fmt::format("`clusterctl node decommission {}`", node->name), node->name});
    } else if (node->status.presence == fleet::Presence::kDisappeared) {
      problems_.add(
          Code::kConflict,
          Problem{"unreachable", fmt::format("{} does not answer", node->name),
                  fmt::format("bring it back and run `clusterctl node check {}`", node->name),
                  node->name});
    } else if (!request_.services.empty()) {
      check_narrowed(*node);
    }
  }
}

// Some services alone: only where everything else is in order.
void Update::check_narrowed(const Node& node) {
  const auto after = services_after(node);
  if (has_condition(node.status, fleet::condition::kDirty) ||
      !context_.strays(node, after).empty()) {
    problems_.add(
        Code::kConflict,
        Problem{"not_in_order",
                fmt::format("{} is not in order: a piece of work on it broke off", node.name),
                fmt::format("`clusterctl node update {}` updates all of it", node.name),
                node.name});
    return;
  }
  const auto wanted = services_wanted(node);
  bool some = false;
  for (const std::string& name : after) {
    if (!is_meant(name)) continue;
    some = true;
    for (const std::string& need : catalog_.needs_of(*catalog_.service(name), vars_of(node))) {
      if (!has(wanted, need) || has(after, need)) continue;
      problems_.add(
          Code::kConflict,
          Problem{"needs_service",
                  fmt::format("{} on {} needs {}, which is not there yet", name, node.name, need),
                  fmt::format("--service {},{}", need, name), node.name});
    }
  }
  if (some) return;
  problems_.add(Code::kConflict, Problem{"not_carried",
                                         fmt::format("{} does not carry {}", node.name,
                                                     join(request_.services, " or ")),
                                         "it carries: " + join(after, ", "), node.name});
}

void Update::sort_targets() {
  if (request_.nodes.empty()) sort_by_name(targets_);
  for (const Node* node : targets_) {
    const bool votes = role_of(catalog_, *node) == Role::kManager || context_.is_member(*node);
    (votes ? managers_ : others_).push_back(node);
  }
  // Those that are out of use anyway go first: repairing them costs nobody anything.
  std::stable_partition(others_.begin(), others_.end(),
                        [&](const Node* n) { return workers_.unavailable.count(n->id) != 0; });
  targets_ = managers_;
  targets_.insert(targets_.end(), others_.begin(), others_.end());
}

void Update::check_managers() {
  for (Problem& p : check_disrupting(context_, managers_, plan_.quorum))
    problems_.add(Code::kConflict, std::move(p));
  const NodeList all = context_.managers();
  const bool alone = all.size() == 1 && targets_.size() == 1 && targets_[0] == all[0];
  if (alone || context_.peer({})) return;
  problems_.add(Code::kConflict, fleet::no_manager_to_ask(all, "no manager answers"));
}

void Update::cut_batches() {
  for (const Node* node : managers_) batches_.push_back({node});
  if (others_.empty()) return;
  const std::string& wanted = request_.max_unavailable.empty()
                                  ? context_.snapshot().cluster.max_unavailable
                                  : request_.max_unavailable;
  const int may = budget(wanted, static_cast<int>(workers_.all.size())).value_or(1);
  // Away now, and afterwards still: not in this request, or drained because that is wanted.
  std::set<std::string> stay_away = workers_.unavailable;
  for (const Node* node : others_) {
    if (last_availability(*node) != Availability::kDrain) stay_away.erase(node->id);
  }
  const int room = may - static_cast<int>(stay_away.size());
  NodeList batch;
  const auto close = [&] {
    if (!batch.empty()) batches_.push_back(std::move(batch));
    batch.clear();
  };
  for (const Node* node : others_) {
    const bool costs = workers_.unavailable.count(node->id) == 0;
    if (costs && room < 1) {
      NodeList away;
      for (const std::string& id : stay_away) away.push_back(&context_.snapshot().nodes.at(id));
      sort_by_name(away);
      problems_.add(
          Code::kConflict,
          Problem{"budget",
                  fmt::format("no worker may go down: {} of {} {} unavailable already ({}), and "
                              "max_unavailable is {}",
                              away.size(), workers_.all.size(), away.size() == 1 ? "is" : "are",
                              some_names(away), wanted),
                  "bring them back, update only them, or allow more with --max-unavailable", ""});
      return;
    }
    const bool mixed = !batch.empty() && costs != (workers_.unavailable.count(batch[0]->id) == 0);
    const int size = costs ? room : may;
    if (mixed || static_cast<int>(batch.size()) >= size) close();
    batch.push_back(node);
  }
  close();
  if (batches_.size() > kMaxBatches) {
    problems_.add(Code::kInvalid,
                  Problem{"too_many_batches",
                          fmt::format("{} batches are more than the {} that one job may have",
                                      batches_.size(), kMaxBatches),
                          "larger batches with --max-unavailable, or fewer nodes", ""});
  }
}

Json Update::vars_of(const Node& node) const {
  return effective_vars(context_.snapshot(), catalog_, node, node.status.applied->host_group,
                        request_.vars);
}

// Variables may have brought or taken away services since it was applied.
std::vector<std::string> Update::services_wanted(const Node& node) const {
  const fleet::Applied& applied = *node.status.applied;
  return catalog_.services_for(applied.host_group,
                               catalog_.capabilities_for(applied.host_group, applied.capabilities),
                               vars_of(node));
}

// What the node carries when it is done. The services that are not meant stay as they are.
std::vector<std::string> Update::services_after(const Node& node) const {
  auto wanted = services_wanted(node);
  if (request_.services.empty()) return wanted;
  std::vector<std::string> out;
  for (const catalog::Service& s : catalog_.services()) {
    if (has(is_meant(s.name) ? wanted : node.status.applied->services, s.name))
      out.push_back(s.name);
  }
  return out;
}

// Only when something may stop the whole node: a service that does is there, and what was applied
// is not what is wanted now, or the node is not in order.
bool Update::shall_drain(const Node& node) const {
  if (request_.drain == "never" || !context_.is_scheduled(node)) return false;
  if (last_availability(node) == Availability::kDrain) return false;
  if (request_.drain == "always") return true;
  const auto services = services_after(node);
  const bool disrupts = std::any_of(services.begin(), services.end(), [&](const std::string& s) {
    return is_meant(s) && catalog_.service(s)->disrupts == "node";
  });
  const fleet::Applied& applied = *node.status.applied;
  const bool differs = !request_.vars.empty() || !node.status.conditions.empty() ||
                       applied.versions != node.spec.versions || applied.services != services ||
                       applied.vars_fingerprint.empty() ||
                       !drift_of(context_.snapshot(), catalog_, node).empty();
  return disrupts && differs;
}

Stage Update::stage(const std::string& name, const NodeList& nodes) const {
  const NodeList managers = context_.managers();
  const Json vars = managers.empty() ? request_.vars : vars_of(*managers[0]);
  Stage out =
      context_.stage(name, nodes, context_.run_vars(managers, context_.peer(ids_of(nodes)), vars));
  if (name != "observe") {
    for (const Node* node : nodes) out.services[node->id] = services_after(*node);
  }
  // The others of a node in good order are what they were verified to be, which need not be what is
  // wanted now. Where something failed or was away, all of it has to be seen well.
  const bool all =
      name == "observe" || (name == "verify" && !std::all_of(nodes.begin(), nodes.end(), in_order));
  if (!all) out.vars.only_services = request_.services;
  // What every node needs for anything at all is looked at whatever is meant.
  if (name == "check" && !request_.services.empty() && !is_meant("base"))
    out.vars.only_services.insert(out.vars.only_services.begin(), "base");
  return out;
}

std::map<std::string, Availability> Update::to_drain(const NodeList& batch) {
  std::map<std::string, Availability> out;
  const bool place = context_.others_take_work(ids_of(batch));
  for (const Node* node : batch) {
    if (!shall_drain(*node)) continue;
    if (place) {
      out[node->id] = Availability::kDrain;
    } else {
      plan_.warnings.push_back(
          {"not_drained",
           fmt::format("{} is not drained: no other active node could take over what it runs",
                       node->name),
           "", node->name});
    }
  }
  return out;
}

void Update::add_batch(const NodeList& batch, bool watched) {
  const int number = plan_.stages.empty() ? 1 : plan_.stages.back().batch + 1;
  const auto add = [&](Stage s) {
    s.batch = number;
    plan_.stages.push_back(std::move(s));
  };
  if (watched) add(stage("observe", context_.managers()));
  const auto drain = to_drain(batch);
  if (!drain.empty()) {
    Stage s = availability_stage(context_.snapshot(), catalog_, "drain", drain);
    s.vars.drain_deadline = request_.deadline;
    add(std::move(s));
  }
  for (const Node* node : batch) {
    // A change of its role broke off: what belongs to the other one goes.
    const auto strays = context_.strays(*node, services_after(*node));
    if (strays.empty()) continue;
    Stage s = stage("cleanup", {node});
    s.services[node->id] = strays;
    s.vars.leaving = {node->name};
    add(std::move(s));
  }
  add(stage("site", batch));
  add(stage("verify", batch));
  if (drain.empty()) return;
  std::map<std::string, Availability> before;
  for (const auto& [id, to] : drain)
    before[id] = last_availability(context_.snapshot().nodes.at(id));
  Stage s = availability_stage(context_.snapshot(), catalog_, "restore", before);
  s.vars.drain_deadline = 0;
  s.restores = true;
  add(std::move(s));
}

void Update::fill() {
  plan_.kind = "update";
  const std::string what = request_.services.empty() ? "" : join(request_.services, ", ") + " on ";
  plan_.title = targets_.size() == 1 ? fmt::format("update {}{}", what, targets_[0]->name)
                                     : fmt::format("update {}{} nodes", what, targets_.size());
  for (const Node* node : targets_) {
    plan_.targets.push_back(node->id);
    plan_.roles[node->id] = role_of(catalog_, *node).value_or(Role::kWorker);
  }
  plan_.stages.push_back(stage("check", targets_));
  plan_.stages.push_back(stage("observe", context_.managers()));
  bool seen = true;  // the first batch follows an observation
  for (const NodeList& batch : batches_) {
    const bool votes = std::find(managers_.begin(), managers_.end(), batch[0]) != managers_.end();
    add_batch(batch, votes && !seen);
    seen = false;
  }
}

}  // namespace

Result<Plan> plan_update(const Context& context) {
  return Update(context).make();
}

}  // namespace clusterctl::plan
