// replace: one node takes the place of another. One that lives is removed when the new one is
// verified; one that is powered off for good goes first, because nobody should be added while a
// member is missing. Both halves are planned as what they are, a commission and a decommission, the
// second on the fleet as the first leaves it.
#include <fmt/format.h>

#include <algorithm>

#include "fleet/conditions.h"
#include "fleet/words.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Lifecycle;

class Replace {
 public:
  explicit Replace(const Context& context)
      : context_(context),
        request_(context.request()),
        catalog_(context.catalog()),
        dead_(request_.force && request_.powered_off) {}

  Result<Plan> make() {
    find();
    if (problems_.empty()) check_pair();
    if (!problems_.empty()) return problems_.refuse("nothing is replaced");
    plan_halves();
    if (!problems_.empty()) return problems_.refuse("nothing is replaced");
    join_halves();
    return std::move(plan_);
  }

 private:
  void find();
  void check_pair();
  void plan_halves();
  void join_halves();
  Request joining() const;
  Request leaving() const;
  fleet::Snapshot after_leaving() const;
  fleet::Snapshot after_joining(const Plan& joining) const;
  void keep(Result<Plan> half, Plan& into);
  void add(std::vector<Stage> stages, int batch);
  bool fits() const;
  SpecChange wish() const;

  const Context& context_;
  const Request& request_;
  const catalog::Catalog& catalog_;
  const bool dead_;  // nobody will ever answer there
  fleet::Problems problems_;
  const Node *old_ = nullptr, *new_ = nullptr;
  bool joins_ = false, leaves_ = false;  // what is left to do
  Plan in_, out_, plan_;
};

// What the old node was given; when it has left already, what is still wanted of it.
SpecChange given_of(const Node& node) {
  SpecChange out = wish_of(node);
  if (!node.status.applied) return out;
  out.host_group = node.status.applied->host_group;
  if (node.spec.host_group != out.host_group) out.capabilities = node.status.applied->capabilities;
  return out;
}

void Replace::find() {
  const auto find_one = [&](const std::string& ref) -> const Node* {
    const auto found = context_.snapshot().find(ref);
    if (found) return *found;
    problems_.add(found.error());
    return nullptr;
  };
  old_ = find_one(request_.nodes[0]);
  new_ = find_one(request_.with);
  if (old_ && old_ == new_) {
    problems_.add(Code::kInvalid,
                  Problem{"same_node", fmt::format("{} cannot take its own place", old_->name),
                          "`clusterctl node replace OLD --with NEW`", old_->name});
  }
}

// The new one is in the old one's place already: all that is left is the old one.
bool Replace::fits() const {
  const auto& applied = new_->status.applied;
  const SpecChange given = given_of(*old_);
  return new_->status.lifecycle == Lifecycle::kAllocated && applied &&
         applied->host_group == given.host_group &&
         applied->capabilities == catalog_.capabilities_for(given.host_group, given.capabilities);
}

void Replace::check_pair() {
  leaves_ = is_commissioned(*old_);
  joins_ = !fits();
  if (given_of(*old_).host_group.empty()) {
    problems_.add(
        Code::kConflict,
        Problem{"no_group", fmt::format("{} has no host group to take over", old_->name),
                fmt::format("`clusterctl node commission {} --host-group=GROUP`", new_->name),
                old_->name});
  } else if (!leaves_ && old_->status.lifecycle != Lifecycle::kDecommissioned) {
    problems_.add(Code::kConflict,
                  Problem{"transition",
                          fmt::format("{} is {}: there is nothing to replace", old_->name,
                                      fleet::word(old_->status.lifecycle)),
                          fmt::format("`clusterctl node commission {} --host-group={}`", new_->name,
                                      given_of(*old_).host_group),
                          old_->name});
  } else if (!leaves_ && !joins_) {
    problems_.add(
        Code::kConflict,
        Problem{"replaced",
                fmt::format("{} has left and {} is in its place", old_->name, new_->name),
                fmt::format("`clusterctl node rm {}` forgets it", old_->name), old_->name});
  } else if (const auto* gone = find_condition(old_->status, fleet::condition::kReplaced);
             gone && !leaves_) {
    problems_.add(
        Code::kConflict,
        Problem{"replaced", fmt::format("{} has left, and {}", old_->name, gone->reason),
                fmt::format("name the node whose place {0} shall take; `clusterctl node commission "
                            "{0} --host-group={1}` makes it one more",
                            new_->name, given_of(*old_).host_group),
                old_->name});
  }
  if (leaves_ && !dead_ && old_->status.presence == fleet::Presence::kDisappeared) {
    problems_.add(
        Code::kConflict,
        Problem{"unreachable",
                fmt::format("{} does not answer, so it cannot be cleaned", old_->name),
                fmt::format("bring it back and run `clusterctl node check {0}`; if it will never "
                            "answer, power it off: `clusterctl node replace {0} --with {1} --force "
                            "--i-have-powered-it-off`",
                            old_->name, new_->name),
                old_->name});
  }
  if (joins_ && is_commissioned(*new_) && new_->status.lifecycle != Lifecycle::kProvisioning) {
    problems_.add(Code::kConflict,
                  Problem{"in_use",
                          fmt::format("{} is {}: the new node must not be commissioned yet",
                                      new_->name, fleet::word(new_->status.lifecycle)),
                          "`clusterctl node ls` shows the nodes that are free", new_->name});
  }
}

Request Replace::joining() const {
  const SpecChange given = given_of(*old_);
  Request r = request_;
  r.kind = "commission";
  r.nodes = {new_->name};
  r.host_group = given.host_group;
  r.capabilities = given.capabilities;
  r.availability = given.availability;
  r.level = "state";
  r.with.clear();
  // These words are about the old one. Force is also about other members that are missing.
  r.powered_off = false;
  return r;
}

Request Replace::leaving() const {
  Request r = request_;
  r.kind = "decommission";
  r.nodes = {old_->name};
  r.vars = Json::object();
  r.with.clear();
  return r;
}

fleet::Snapshot Replace::after_leaving() const {
  fleet::Snapshot out = context_.snapshot();
  Node& gone = out.nodes.at(old_->id);
  gone.status.lifecycle = Lifecycle::kDecommissioned;
  gone.status.applied.reset();
  std::map<std::string, std::string> ids;
  for (const fleet::View& view : context_.views()) {
    if (const fleet::SeenMember* m = view.of(old_->id)) ids[view.service] = m->id;
  }
  for (const auto& [name, status] : gone.status.services) {
    if (!status.member_id.empty()) ids.emplace(name, status.member_id);
  }
  gone.status.services.clear();
  for (auto& [id, node] : out.nodes) {
    for (auto& [name, status] : node.status.services) {
      std::erase_if(status.members, [&, &service = name](const fleet::Member& m) {
        const auto it = ids.find(service);
        return (it != ids.end() && m.id == it->second) || m.name == old_->name;
      });
    }
  }
  return out;
}

fleet::Snapshot Replace::after_joining(const Plan& joining) const {
  fleet::Snapshot out = context_.snapshot();
  Node& node = out.nodes.at(new_->id);
  node.status.applied = applied_after(out, catalog_, joining, node);
  node.status.lifecycle = Lifecycle::kAllocated;
  node.status.presence = fleet::Presence::kDiscovered;
  if (role_of(catalog_, node) != fleet::Role::kManager) return out;
  for (const std::string& service : catalog_.quorum_services()) {
    const fleet::Member member{"of " + node.id, node.name, node.spec.addr, "member", true, false};
    for (auto& [id, other] : out.nodes) {
      const auto report = other.status.services.find(service);
      if (report != other.status.services.end() && !report->second.members.empty())
        report->second.members.push_back(member);
    }
    node.status.services[service].member_id = member.id;
  }
  return out;
}

// Problems of both halves.
void Replace::keep(Result<Plan> half, Plan& into) {
  if (half) {
    into = std::move(*half);
    return;
  }
  const Error& error = half.error();
  if (error.problems.empty()) problems_.add(error);
  for (const Problem& p : error.problems) {
    problems_.add(error.code, p);
  }
}

void Replace::plan_halves() {
  const fleet::Snapshot& now = context_.snapshot();
  if (dead_ && leaves_) {
    keep(make_plan(now, catalog_, leaving()), out_);
    if (problems_.empty() && out_.stages.empty()) {
      problems_.add(Code::kConflict,
                    Problem{"no_survivor",
                            fmt::format("no manager is left that could forget {} and admit {}",
                                        old_->name, new_->name),
                            fmt::format("`clusterctl node decommission {} --force "
                                        "--i-have-powered-it-off`, then commission a new cluster",
                                        old_->name),
                            old_->name});
    }
    if (joins_) keep(make_plan(after_leaving(), catalog_, joining()), in_);
    return;
  }
  if (joins_) keep(make_plan(now, catalog_, joining()), in_);
  if (!leaves_ || (joins_ && in_.stages.empty())) return;
  keep(make_plan(joins_ ? after_joining(in_) : now, catalog_, leaving()), out_);
}

SpecChange Replace::wish() const {
  SpecChange out = in_.changes.at(new_->id);
  // What it was given itself describes the machine, and stays.
  std::map<std::string, std::string> labels = new_->spec.labels;
  labels.insert(old_->spec.labels.begin(), old_->spec.labels.end());
  out.labels = std::move(labels);
  if (request_.take_vars) {
    Json vars = old_->spec.vars;
    vars.update(new_->spec.vars);
    out.vars = std::move(vars);
  }
  return out;
}

void Replace::add(std::vector<Stage> stages, int batch) {
  for (Stage& s : stages) {
    // Nothing is changed before the check has passed, whoever goes first.
    if (s.name != "check") s.batch = batch;
    plan_.stages.push_back(std::move(s));
  }
}

void Replace::join_halves() {
  plan_.kind = "replace";
  plan_.title = fmt::format("replace {} with {}{}", old_->name, new_->name,
                            dead_ && leaves_ ? " (powered off)" : "");
  if (joins_) {
    plan_.targets.push_back(new_->id);
    plan_.parts[new_->id] = "commission";
    plan_.changes[new_->id] = wish();
    plan_.cleanup = in_.cleanup;
  }
  if (leaves_) {
    plan_.targets.push_back(old_->id);
    plan_.parts[old_->id] = "decommission";
  }
  for (const Plan* half : {&in_, &out_}) {
    plan_.roles.insert(half->roles.begin(), half->roles.end());
    plan_.warnings.insert(plan_.warnings.end(), half->warnings.begin(), half->warnings.end());
  }
  const bool gone_first = dead_ && leaves_;
  for (const Plan* half : {gone_first ? &out_ : &in_, gone_first ? &in_ : &out_}) {
    for (const auto& [service, q] : half->quorum) {
      QuorumView& view = plan_.quorum.emplace(service, q).first->second;
      view.total_after = q.total_after;
      view.tolerates_after = q.tolerates_after;
    }
  }
  for (Stage& s : out_.stages) {
    if (s.name == "forget") s.about = {old_->id};
  }
  const auto check = std::find_if(in_.stages.begin(), in_.stages.end(),
                                  [](const Stage& s) { return s.name == "check"; });
  if (gone_first) {
    if (check != in_.stages.end()) {
      plan_.stages.push_back(*check);
      in_.stages.erase(check);
    }
    add(std::move(out_.stages), 1);
    add(std::move(in_.stages), 2);
  } else {
    add(std::move(in_.stages), 1);
    add(std::move(out_.stages), joins_ ? 2 : 1);
  }
  // The other half makes up for what the one loses.
  std::erase_if(plan_.warnings, [](const Problem& p) { return p.code == "less_tolerance"; });
  warn_about_loss(plan_);
}

}  // namespace

Result<Plan> plan_replace(const Context& context) {
  return Replace(context).make();
}

}  // namespace clusterctl::plan
