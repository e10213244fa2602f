// promote, demote, and update of group or capabilities: a commissioned node carries other services
// afterwards, maybe with another role. check → observe → for each node, one after the other:
// [observe] → [step-down] → [cleanup of what it loses] → site → verify; at the end observe, if
// members changed. What it loses is cleaned with the old role, what it gets is made with the new.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/lifecycle.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"
#include "fleet/words.h"
#include "plan/candidates.h"
#include "plan/context.h"

namespace clusterctl::plan {
namespace {

using fleet::Candidate;
using fleet::Role;
using Names = std::vector<std::string>;

Names without(const Names& list, const Names& others) {
  Names out;
  for (const std::string& name : list) {
    if (!contains(others, name)) out.push_back(name);
  }
  return out;
}

// One node: what it is and what it shall be.
struct Move {
  const Node* node = nullptr;
  SpecChange wish;
  Role from = Role::kWorker, to = Role::kWorker;
  Names before, after;
  bool joins() const { return from == Role::kWorker && to == Role::kManager; }
  bool leaves() const { return from == Role::kManager && to == Role::kWorker; }
};

class Reassign {
 public:
  explicit Reassign(const Context& context)
      : context_(context), request_(context.request()), catalog_(context.catalog()) {}

  Result<Plan> make() {
    targets_ = context_.named(problems_, plan_.warnings);
    if (targets_.empty() && problems_.empty()) {
      problems_.add(Code::kInvalid,
                    Problem{"no_nodes", "no nodes are named",
                            fmt::format("`clusterctl node {} NAME…`", request_.kind), ""});
    }
    find_group();
    if (problems_.empty()) {
      for (const Node* node : targets_) check_node(*node);
    }
    if (problems_.empty()) {
      for (const Node* node : targets_) moves_.push_back(move_of(*node));
      if (check_way()) {
        check_rules();
        check_members();
      }
    }
    if (!problems_.empty())
      return problems_.refuse(fmt::format("nothing is {}", request_.kind == "update" ? "updated"
                                                           : request_.kind == "promote"
                                                               ? "promoted"
                                                               : "demoted"));
    fill();
    return std::move(plan_);
  }

 private:
  void find_group();
  void check_node(const Node& node);
  Move move_of(const Node& node) const;
  bool check_way();
  void check_rules();
  void check_members();
  void fill();
  void add_batch(const Move& m, bool watched);
  void add_put_back(const Move& m);
  Stage stage(const std::string& name, const NodeList& nodes) const;
  Stage stage_for(const Move& m, const std::string& name, const Names& services) const;
  Names shared_memberships(const Move& m) const;
  std::string title() const;

  const Context& context_;
  const Request& request_;
  const catalog::Catalog& catalog_;
  fleet::Problems problems_;
  std::string group_;           // empty: each keeps its own
  NodeList targets_, members_;  // members_: managers as they are when the stage runs
  const Node* peer_ = nullptr;
  std::vector<Move> moves_;
  std::map<std::string, Names> moved_;  // id -> services of those that came before
  Plan plan_;
};

// The group the nodes get: the given one, or the first of the catalog with the wanted role.
void Reassign::find_group() {
  group_ = request_.host_group;
  if (!group_.empty() && !catalog_.host_group(group_)) {
    const std::string near = nearest(group_, catalog_.host_group_names());
    problems_.add(
        Code::kInvalid,
        Problem{"unknown_group", fmt::format("there is no host group {}", fleet::shown(group_)),
                (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) +
                    "one of: " + join(catalog_.host_group_names(), ", "),
                ""});
    return;
  }
  if (request_.kind == "update") return;
  const Role wanted = request_.kind == "promote" ? Role::kManager : Role::kWorker;
  for (const std::string& name : catalog_.host_group_names()) {
    if (!group_.empty()) break;
    if (catalog_.role(name, catalog_.capabilities_for(name, request_.capabilities)) == wanted)
      group_ = name;
  }
  const bool fits =
      !group_.empty() &&
      catalog_.role(group_, catalog_.capabilities_for(group_, request_.capabilities)) == wanted;
  if (fits) return;
  problems_.add(
      Code::kInvalid,
      Problem{
          "wrong_role",
          group_.empty()
              ? fmt::format("no host group makes a {}", fleet::word(wanted))
              : fmt::format("{} with these capabilities makes no {}", group_, fleet::word(wanted)),
          "`clusterctl node update NAME --host-group=GROUP` changes the group without regard to "
          "the role",
          ""});
}

void Reassign::check_node(const Node& node) {
  if (auto to = next(node, fleet::Event::kMaintain); !to) {
    Problem problem{"transition", to.error().message, to.error().hint, node.name};
    if (!is_commissioned(node)) {
      problem.message = fmt::format("{} is {} and has no role in the cluster", node.name,
                                    fleet::word(node.status.lifecycle));
      problem.hint = fmt::format("`clusterctl node commission {} --host-group={}` gives it one",
                                 node.name, group_.empty() ? "GROUP" : group_);
    }
    problems_.add(Code::kConflict, std::move(problem));
    return;
  }
  if (!node.status.applied) {
    problems_.add(
        Code::kConflict,
        Problem{"transition", fmt::format("{} carries nothing that was verified", node.name),
                fmt::format("`clusterctl node decommission {}`", node.name), node.name});
    return;
  }
  if (node.status.presence == fleet::Presence::kDisappeared) {
    problems_.add(
        Code::kConflict,
        Problem{"unreachable", fmt::format("{} does not answer", node.name),
                fmt::format("bring it back and run `clusterctl node check {}`", node.name),
                node.name});
    return;
  }
  const Role role = role_of(catalog_, node).value_or(Role::kWorker);
  const bool promote = request_.kind == "promote", demote = request_.kind == "demote";
  if ((promote && role == Role::kManager) || (demote && role == Role::kWorker)) {
    problems_.add(
        Code::kConflict,
        Problem{"has_role", fmt::format("{} is a {} already", node.name, fleet::word(role)),
                node.status.lifecycle == fleet::Lifecycle::kMaintenance
                    ? fmt::format("`clusterctl node update {}` puts it in order", node.name)
                    : "`clusterctl node ls` shows the roles",
                node.name});
    return;
  }
  const Names& now = node.status.applied->capabilities;
  const bool dtr = std::any_of(now.begin(), now.end(),
                               [](const std::string& c) { return c.rfind("dtr-", 0) == 0; });
  if (promote && dtr && request_.capabilities.empty()) {
    problems_.add(Code::kRefused,
                  Problem{"carries_registry",
                          fmt::format("{} carries the registry ({}), which makes it a worker",
                                      node.name, join(now, ", ")),
                          "promote another node, or name the capabilities it shall have with "
                          "--capabilities",
                          node.name});
  }
}

Move Reassign::move_of(const Node& node) const {
  const fleet::Applied& applied = *node.status.applied;
  Move m;
  m.node = &node;
  m.wish = wish_of(node);
  // What it was given for another group says nothing about this one.
  const bool other = !group_.empty() && group_ != applied.host_group;
  m.wish.host_group = group_.empty() ? applied.host_group : group_;
  m.wish.capabilities =
      other || !request_.capabilities.empty() ? request_.capabilities : node.spec.capabilities;
  const Names capabilities = catalog_.capabilities_for(m.wish.host_group, m.wish.capabilities);
  m.from = role_of(catalog_, node).value_or(Role::kWorker);
  m.to = catalog_.role(m.wish.host_group, capabilities);
  m.before = applied.services;
  m.after = catalog_.services_for(
      m.wish.host_group, capabilities,
      effective_vars(context_.snapshot(), catalog_, node, m.wish.host_group, request_.vars));
  return m;
}

// A manager must be left through which it is done. False: there would be none at all, and what else
// speaks against it follows from that.
bool Reassign::check_way() {
  std::set<std::string> leaving;
  for (const Move& m : moves_) {
    if (m.leaves()) leaving.insert(m.node->id);
  }
  const NodeList stay = context_.managers(leaving);
  peer_ = context_.peer(ids_of(targets_));
  const bool role_changes =
      !leaving.empty() ||
      std::any_of(moves_.begin(), moves_.end(), [](const Move& m) { return m.joins(); });
  if (!leaving.empty() && stay.empty()) {
    problems_.add(
        Code::kConflict,
        Problem{"last_manager",
                fmt::format("no manager would be left: {} {} every manager of the cluster",
                            some_names(targets_), targets_.size() == 1 ? "is" : "are"),
                "promote another node first: `clusterctl node promote NAME`", ""});
    return false;
  }
  const bool alone = !role_changes && context_.managers().size() == 1 && targets_.size() == 1 &&
                     targets_[0] == context_.managers()[0];
  if (peer_ || alone) return true;
  const NodeList others = context_.managers(ids_of(targets_));
  Problem why = fleet::no_manager_to_ask(
      others, "no manager outside the request answers through which it could be done");
  if (others.empty()) why.hint = "take the nodes in several requests";
  problems_.add(Code::kConflict, std::move(why));
  return true;
}

void Reassign::check_rules() {
  std::vector<Candidate> candidates;
  for (const Move& m : moves_) {
    Candidate c;
    c.node = m.node;
    c.host_group = m.wish.host_group;
    c.capabilities = catalog_.capabilities_for(m.wish.host_group, m.wish.capabilities);
    c.role = m.to;
    c.group_manages = catalog_.host_group(m.wish.host_group)->manager;
    c.vars = effective_vars(context_.snapshot(), catalog_, *m.node, c.host_group, request_.vars);
    c.services = m.after;
    add_catalog_facts(catalog_, c);
    candidates.push_back(std::move(c));
  }
  fleet::Findings findings = check_placement(
      placement_for(context_, candidates, context_.managers(ids_of(targets_)), peer_));
  for (const Problem& p : findings.problems.list()) problems_.add(Code::kRefused, p);
  plan_.warnings.insert(plan_.warnings.end(), findings.warnings.begin(), findings.warnings.end());
}

void Reassign::check_members() {
  std::vector<Reassigned> steps;
  for (const Move& m : moves_) steps.push_back({m.node, m.from, m.to, m.after});
  for (Problem& p : check_reassigning(context_, steps, plan_.quorum))
    problems_.add(Code::kConflict, std::move(p));
  warn_about_loss(plan_);
}

// Services that count members and are there before and after: in them the node only gets another
// part.
Names Reassign::shared_memberships(const Move& m) const {
  Names out;
  for (const std::string& name : m.before) {
    const catalog::Service* s = catalog_.service(name);
    if (s && s->quorum_members && contains(m.after, name)) out.push_back(name);
  }
  return out;
}

std::string Reassign::title() const {
  const std::string who =
      moves_.size() == 1 ? moves_[0].node->name : fmt::format("{} nodes", moves_.size());
  const std::string to = group_.empty() ? "with other capabilities" : "to " + group_;
  return fmt::format("{} {} {}", request_.kind, who, to);
}

Stage Reassign::stage(const std::string& name, const NodeList& nodes) const {
  const Node* one = peer_ ? peer_ : members_.empty() ? nullptr : members_[0];
  const Json vars = one ? effective_vars(context_.snapshot(), catalog_, *one,
                                         one->status.applied->host_group, request_.vars)
                        : request_.vars;
  Stage out = context_.stage(name, nodes, context_.run_vars(members_, peer_, vars));
  // Managers as they are by then: not those that were made workers before, but those made managers.
  std::erase_if(out.peers, [&](const std::string& id) {
    return std::none_of(members_.begin(), members_.end(),
                        [&](const Node* n) { return n->id == id; });
  });
  const auto targets = ids_of(nodes);
  for (const Node* node : members_) {
    if (targets.count(node->id)) continue;
    if (!contains(out.peers, node->id)) out.peers.push_back(node->id);
    const auto it = moved_.find(node->id);
    out.services[node->id] = it == moved_.end() ? context_.services_of(*node) : it->second;
  }
  return out;
}

Stage Reassign::stage_for(const Move& m, const std::string& name, const Names& services) const {
  Stage out = stage(name, {m.node});
  out.services[m.node->id] = services;
  return out;
}

void Reassign::add_put_back(const Move& m) {
  std::vector<Stage>& out = plan_.put_back[m.node->id];
  const Names gained = without(m.after, m.before);
  Stage back = stage_for(m, "put-back", m.before);
  back.playbook = "site.yml";
  back.as_before = true;
  // Its part first; what it lost is made again, what it kept is untouched.
  if (m.joins()) back.vars.only_services = shared_memberships(m);
  if (m.leaves()) {
    back.vars.managers.push_back(m.node->name);
    std::sort(back.vars.managers.begin(), back.vars.managers.end());
  }
  out.push_back(back);
  if (!gained.empty()) {
    Stage cleanup = stage_for(m, "cleanup", gained);
    std::erase(cleanup.vars.managers, m.node->name);
    cleanup.vars.leaving = {m.node->name};
    out.push_back(std::move(cleanup));
  }
  if (m.from != m.to) out.push_back(stage("observe", members_));
}

void Reassign::add_batch(const Move& m, bool watched) {
  const int number = plan_.stages.empty() ? 1 : plan_.stages.back().batch + 1;
  const auto add = [&](Stage s) {
    s.batch = number;
    plan_.stages.push_back(std::move(s));
  };
  if (watched) add(stage("observe", members_));
  if (m.leaves()) std::erase(members_, m.node);
  add_put_back(m);
  if (m.leaves()) {
    Stage down = stage_for(m, "step-down", m.after);
    down.playbook = "site.yml";
    down.vars.only_services = shared_memberships(m);
    if (!down.vars.only_services.empty()) add(std::move(down));
  }
  Names lost = context_.strays(*m.node, m.after);
  if (lost.empty()) lost = without(m.before, m.after);
  if (!lost.empty()) {
    Stage cleanup = stage_for(m, "cleanup", lost);
    cleanup.as_before = true;
    cleanup.vars.leaving = {m.node->name};
    add(std::move(cleanup));
  }
  if (m.joins()) {
    members_.push_back(m.node);
    sort_by_name(members_);
  }
  add(stage_for(m, "site", m.after));
  add(stage_for(m, "verify", m.after));
  moved_[m.node->id] = m.after;
}

void Reassign::fill() {
  plan_.kind = request_.kind;
  plan_.title = title();
  members_ = context_.managers();
  bool members_change = false;
  for (const Move& m : moves_) {
    const std::string& id = m.node->id;
    plan_.targets.push_back(id);
    plan_.changes[id] = m.wish;
    const bool manager = m.from == Role::kManager || m.to == Role::kManager;
    plan_.roles[id] = manager ? Role::kManager : Role::kWorker;
    members_change = members_change || m.from != m.to;
  }
  Stage check = stage("check", targets_);
  for (const Move& m : moves_) check.services[m.node->id] = m.after;
  plan_.stages.push_back(std::move(check));
  const NodeList before = members_;
  plan_.stages.push_back(stage("observe", before));
  bool seen = true;  // the first batch follows an observation
  for (const Move& m : moves_) {
    add_batch(m, !seen && plan_.roles[m.node->id] == Role::kManager);
    seen = false;
  }
  if (members_change) plan_.stages.push_back(stage("observe", members_));
}

}  // namespace

Result<Plan> plan_reassign(const Context& context) {
  return Reassign(context).make();
}

// What the members can spare is the reason to have several: less of it is said before, not after.
void warn_about_loss(Plan& plan) {
  for (const auto& [service, q] : plan.quorum) {
    if (q.total_before == 0 || q.total_after >= q.total_before) continue;
    if (q.total_after == 0) {
      plan.warnings.push_back(
          {"ends_cluster",
           fmt::format("{} ends: none of its {} is left", service,
                       q.total_before == 1 ? "members" : fmt::format("{} members", q.total_before)),
           "what it keeps is gone with the last of them", ""});
      continue;
    }
    const fleet::Count before{q.total_before, q.reachable_before};
    if (q.tolerates_after >= before.tolerates()) continue;
    plan.warnings.push_back(
        {"less_tolerance",
         fmt::format("{} goes from {} members to {}: afterwards {} may fail instead of {}", service,
                     q.total_before, q.total_after,
                     q.tolerates_after == 0 ? "none" : std::to_string(q.tolerates_after),
                     before.tolerates()),
         "`clusterctl node promote NAME` or a further manager makes up for it", ""});
  }
}

}  // namespace clusterctl::plan
