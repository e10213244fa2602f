// Random fleets and requests. The safety of an accepted plan is reckoned here once more,
// independently of the planner: members are counted one by one, in a random order.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "draw.h"
#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Lifecycle;
using fleet::Presence;

struct World {
  fleet::FleetBuilder fleet;
  std::set<std::string> members, alive;  // names, as observed
  std::vector<std::string> all;
};

World random_world() {
  World w;
  const int managers = *rc::gen::inRange(0, 8), workers = *rc::gen::inRange(0, 3),
            fresh = *rc::gen::inRange(1, 5);
  std::vector<std::string> down;
  for (int i = 0; i < managers; ++i) {
    const std::string name = "m" + std::to_string(i);
    w.fleet.manager(name);
    w.members.insert(name);
    w.all.push_back(name);
    if (once_in(6)) down.push_back(name);
  }
  if (managers > 0 && static_cast<int>(down.size()) == managers)
    down.pop_back();  // somebody must have reported
  w.fleet.report(down);
  for (const std::string& name : w.members) {
    if (std::count(down.begin(), down.end(), name) == 0) w.alive.insert(name);
    fleet::Node& node = w.fleet[name];
    if (once_in(6))
      node.status.lifecycle = one_of<Lifecycle>({Lifecycle::kMaintenance, Lifecycle::kCancelled});
    if (once_in(6)) {
      node.status.presence = Presence::kDisappeared;
      w.alive.erase(name);
    }
  }
  for (int i = 0; i < workers; ++i) {
    w.all.push_back("w" + std::to_string(i));
    w.fleet.worker(w.all.back());
  }
  for (int i = 0; i < fresh; ++i) {
    w.all.push_back("n" + std::to_string(i));
    fleet::Node& node = w.fleet.add(w.all.back(), coin() ? "service-master" : "service-worker");
    if (once_in(6))
      node.status.lifecycle =
          one_of<Lifecycle>({Lifecycle::kProvisioning, Lifecycle::kDecommissioned});
    if (once_in(6))
      set_condition(node.status, fleet::condition::kNotCleaned, "r", "j", fleet::at(1));
  }
  w.fleet.snapshot().globals = {{"service_vip", "10.0.0.200"}};
  return w;
}

Json random_request(const World& w) {
  Json body{{"kind", one_of<std::string>({"commission", "decommission", "decommission"})}};
  std::set<std::string> nodes;
  const int n = *rc::gen::inRange(1, 5);
  for (int i = 0; i < n; ++i) nodes.insert(one_of(w.all));
  if (once_in(6)) nodes = {w.all.begin(), w.all.end()};
  body["nodes"] = nodes;
  if (once_in(6) || coin()) body["force"] = coin();
  if (body["kind"] == "decommission" && body.value("force", false)) body["powered_off"] = coin();
  return body;
}

bool majority_answers(const std::set<std::string>& members, const std::set<std::string>& alive) {
  return members.empty() || alive.size() >= members.size() / 2 + 1;
}

// Takes the members away one by one, in a random order; nothing may be lost on the way.
void walk_decommission(World& w, const Plan& plan, bool force) {
  std::vector<std::string> order;
  for (const std::string& id : plan.targets) order.push_back(w.fleet.snapshot().nodes.at(id).name);
  const std::set<std::string> targets(order.begin(), order.end());
  bool others_stay = false, manager_stays = false, member_leaves = false;
  for (const auto& [id, node] : w.fleet.snapshot().nodes) {
    if (!is_commissioned(node) || targets.count(node.name)) continue;
    others_stay = true;
    const bool serving = node.status.lifecycle == Lifecycle::kAllocated ||
                         node.status.lifecycle == Lifecycle::kMaintenance;
    manager_stays |= w.members.count(node.name) && serving;
  }
  for (const std::string& name : order) member_leaves |= w.members.count(name) != 0;
  if (!others_stay) return;  // everything in one request
  if (member_leaves && !manager_stays) {
    RC_ASSERT(force);  // the last one, on purpose
    return;
  }
  if (!member_leaves) return;
  if (plan.powered_off) {
    for (const std::string& name : order) w.alive.erase(name);
  }
  RC_ASSERT(majority_answers(w.members, w.alive));
  while (!order.empty()) {
    const size_t i = *rc::gen::inRange<size_t>(0, order.size());
    w.members.erase(order[i]);
    w.alive.erase(order[i]);
    RC_ASSERT(majority_answers(w.members, w.alive));
    order.erase(order.begin() + static_cast<long>(i));
  }
  RC_ASSERT(!w.members.empty());
}

void walk_commission(World& w, const Plan& plan) {
  bool begins = !w.members.empty() || plan.stages.empty();
  for (const std::string& id : plan.targets) {
    const std::string& name = w.fleet.snapshot().nodes.at(id).name;
    if (plan.roles.at(id) != fleet::Role::kManager) continue;
    RC_ASSERT(majority_answers(w.members, w.alive));
    w.members.insert(name);
    w.alive.insert(name);
    begins = true;
    RC_ASSERT(majority_answers(w.members, w.alive));
  }
  RC_ASSERT(begins);  // no worker without a cluster
}

void check_shape(const World& w, const Plan& plan) {
  const auto& nodes = const_cast<World&>(w).fleet.snapshot().nodes;
  RC_ASSERT(!plan.targets.empty());
  std::set<std::string> targets(plan.targets.begin(), plan.targets.end());
  RC_ASSERT(targets.size() == plan.targets.size());
  for (const Stage& s : plan.stages) {
    RC_ASSERT(!s.nodes.empty());
    for (const std::string& id : s.nodes) RC_ASSERT(s.services.count(id) == 1);
    for (const std::string& id : s.peers) {
      RC_ASSERT(std::count(s.nodes.begin(), s.nodes.end(), id) == 0);
      RC_ASSERT(nodes.at(id).status.applied->host_group == "service-master");
    }
    for (const std::string& name : s.vars.leaving) {
      RC_ASSERT(std::count(s.vars.managers.begin(), s.vars.managers.end(), name) == 0 ||
                plan.kind == "commission");
      RC_ASSERT(s.vars.peer != name);
    }
    if (plan.powered_off) {
      for (const std::string& id : plan.targets) {
        RC_ASSERT(s.services.count(id) == 0);
        RC_ASSERT(std::count(s.peers.begin(), s.peers.end(), id) == 0);
      }
    }
    // An initiator and a peer at once would be two clusters.
    RC_ASSERT(s.vars.initiator.empty() || s.vars.peer.empty());
  }
}

TEST(PlanProperties, AnAcceptedPlanNeverLosesAMajority) {
  const catalog::Catalog catalog = test_catalog();
  int accepted = 0, refused = 0;
  EXPECT_TRUE(rc::check("accepted plans are safe at every step", [&] {
    World w = random_world();
    const Json body = random_request(w);
    const auto request = parse_request(body);
    RC_ASSERT(request.has_value());
    const auto plan = make_plan(w.fleet.snapshot(), catalog, *request);
    if (!plan) {
      ++refused;
      RC_ASSERT(!plan.error().problems.empty());
      RC_ASSERT(plan.error().code == Code::kConflict || plan.error().code == Code::kRefused);
      return;
    }
    ++accepted;
    check_shape(w, *plan);
    RC_ASSERT(recheck_quorum(w.fleet.snapshot(), catalog, *request, *plan).has_value());
    if (request->kind == "decommission") walk_decommission(w, *plan, request->force);
    if (request->kind == "commission") walk_commission(w, *plan);
  }));
  EXPECT_GT(accepted, 5);
  EXPECT_GT(refused, 5);
}

// Workers in every state; an update of some of them, with some budget.
World random_workers() {
  World w;
  const int managers = *rc::gen::inRange(1, 6), workers = *rc::gen::inRange(1, 12);
  for (int i = 0; i < managers; ++i) {
    w.all.push_back("m" + std::to_string(i));
    w.fleet.manager(w.all.back());
  }
  std::vector<std::string> down;
  for (int i = 1; i < managers; ++i) {
    if (once_in(6)) down.push_back("m" + std::to_string(i));
  }
  w.fleet.report(down);
  for (int i = 0; i < workers; ++i) {
    w.all.push_back("w" + std::to_string(i));
    fleet::Node& node = w.fleet.worker(w.all.back());
    if (once_in(6)) node.status.presence = Presence::kDisappeared;
    if (once_in(6)) node.status.lifecycle = Lifecycle::kMaintenance;
    if (once_in(6)) node.status.services["swarm"].healthy = false;
    if (once_in(6)) node.status.applied->availability = fleet::Availability::kDrain;
    if (coin()) node.spec.availability = node.status.applied->availability;
  }
  w.fleet.snapshot().cluster.max_unavailable = one_of<std::string>({"1", "2", "3", "25%", "60%"});
  return w;
}

// While a batch is worked on its nodes are down. Afterwards they are in order, but for those that
// are drained because that is wanted.
void walk_update(World& w, const Plan& plan, const catalog::Catalog& catalog, int may) {
  const auto& nodes = w.fleet.snapshot().nodes;
  const WorkerState before = worker_state(w.fleet.snapshot(), catalog);
  std::set<std::string> away = before.unavailable;
  const size_t limit = std::max(away.size(), static_cast<size_t>(may));
  std::map<int, std::set<std::string>> batches;
  std::set<std::string> seen;
  for (const Stage& s : plan.stages) {
    if (s.name == "site") {
      RC_ASSERT(s.batch > 0);
      for (const std::string& id : s.nodes) {
        RC_ASSERT(seen.insert(id).second);  // nobody twice
        batches[s.batch].insert(id);
      }
    } else if (s.name == "drain") {
      for (const std::string& id : s.nodes) batches[s.batch].insert(id);
    }
  }
  RC_ASSERT(seen == std::set<std::string>(plan.targets.begin(), plan.targets.end()));
  for (const auto& [number, batch] : batches) {
    size_t managers = 0;
    for (const std::string& id : batch) {
      managers += plan.roles.at(id) == fleet::Role::kManager;
      if (before.all.count(id)) away.insert(id);
    }
    RC_ASSERT(managers == 0 || batch.size() == 1);  // a manager is worked on alone
    RC_ASSERT(away.size() <= limit);
    for (const std::string& id : batch) {
      if (last_availability(nodes.at(id)) != fleet::Availability::kDrain) away.erase(id);
    }
  }
}

TEST(PlanProperties, AnUpdateNeverTakesDownMoreThanTheBudgetNorAMajority) {
  const catalog::Catalog catalog = test_catalog();
  int accepted = 0, refused = 0;
  EXPECT_TRUE(rc::check("updates keep the budget and the majorities", [&] {
    World w = random_workers();
    std::set<std::string> nodes;
    const int n = *rc::gen::inRange(1, 9);
    for (int i = 0; i < n; ++i) nodes.insert(one_of(w.all));
    Json body{
        {"kind", "update"}, {"nodes", nodes}, {"drain", one_of<std::string>({"auto", "always"})}};
    if (coin()) body["max_unavailable"] = one_of<std::string>({"1", "2", "5", "40%"});
    if (once_in(6)) body["allow_outage"] = true;
    const auto request = parse_request(body);
    RC_ASSERT(request.has_value());
    const auto plan = make_plan(w.fleet.snapshot(), catalog, *request);
    if (!plan) {
      ++refused;
      RC_ASSERT(plan.error().code == Code::kConflict);
      return;
    }
    ++accepted;
    const std::string& wanted = request->max_unavailable.empty()
                                    ? w.fleet.snapshot().cluster.max_unavailable
                                    : request->max_unavailable;
    const WorkerState state = worker_state(w.fleet.snapshot(), catalog);
    walk_update(w, *plan, catalog, *budget(wanted, static_cast<int>(state.all.size())));
    for (const fleet::View& view : observe_members(w.fleet.snapshot(), catalog)) {
      const fleet::Count c = view.count();
      for (const std::string& id : plan->targets) {
        const fleet::SeenMember* member = view.of(id);
        if (!member || !member->reachable) continue;
        const bool safe = c.total <= 2 ? request->allow_outage : c.reachable - 1 >= c.total / 2 + 1;
        RC_ASSERT(safe);
      }
    }
  }));
  EXPECT_GT(accepted, 5);
  EXPECT_GT(refused, 5);
}

TEST(PlanProperties, PlanningIsDeterministicAndChangesNothing) {
  const catalog::Catalog catalog = test_catalog();
  EXPECT_TRUE(rc::check("the same twice", [&] {
    World w = random_world();
    const fleet::Snapshot before = w.fleet.snapshot();
    const auto request = parse_request(random_request(w));
    const auto a = make_plan(w.fleet.snapshot(), catalog, *request),
               b = make_plan(w.fleet.snapshot(), catalog, *request);
    RC_ASSERT(a.has_value() == b.has_value());
    RC_ASSERT(before.nodes == w.fleet.snapshot().nodes);
    if (!a) {
      RC_ASSERT(a.error().problems == b.error().problems);
      return;
    }
    RC_ASSERT(to_json(*a, before) == to_json(*b, before));
    // Names in the order of the plan mean the same plan.
    const auto again = make_plan(before, catalog, pinned(*request, *a, before));
    RC_ASSERT(again.has_value());
    RC_ASSERT(to_json(*again, before)["stages"] == to_json(*a, before)["stages"]);
  }));
}

}  // namespace
}  // namespace clusterctl::plan
