// Random fleets with a registry, random requests: what every accepted plan keeps, read from the
// plan alone and from nothing the rules say. A refusal changes nothing.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "draw.h"
#include "fleet/lifecycle.h"
#include "ucp_fixture.h"

namespace clusterctl::plan {
namespace {

using Names = std::vector<std::string>;

struct UcpWorld {
  UcpFleet fleet;
  Names all;
};

void random_globals(UcpWorld& w) {
  Json& globals = w.fleet.fleet.snapshot().globals;
  if (once_in(5)) globals.erase("service_vip");
  if (!once_in(5)) globals["dtr_storage"] = one_of<std::string>({"nfs", "local", "s3"});
  if (once_in(5)) globals["dtr_bootstrap_node_name"] = one_of<std::string>({"n1", "n2"});
  if (once_in(5)) globals["dtr_http_port"] = one_of<int>({80, 443, 8080});
  if (once_in(5)) globals["vip_provider"] = "external";
  if (once_in(5)) globals["contiv_network_version"] = "1";
}

void random_node(fleet::Node& node) {
  node.spec.host_group = one_of<std::string>({"service-master", "service-worker"});
  if (once_in(5))
    node.spec.capabilities = one_of<Names>({{"dtr-controller"},
                                            {"dtr-replica"},
                                            {"dtr-controller", "ucp-controller"},
                                            {"can-run-user-containers", "dtr-replica"}});
  if (once_in(5)) node.spec.vars["dtr_replica"] = true;
  if (coin()) {
    fleet::Hardware& h = node.status.hardware.emplace();
    h.series = one_of<std::string>({"b-series", "c-series", "other"});
    h.memory_mb = one_of<int64_t>({2048, 4096, 8192, 65536});
  }
}

UcpWorld random_ucp_world() {
  UcpWorld w;
  const int managers = up_to(4), registry = managers ? up_to(3) : 0;
  for (int i = 1; i <= managers; ++i) {
    w.all.push_back("m" + std::to_string(i));
    fleet::Node& node = w.fleet.manager(w.all.back());
    if (once_in(5)) std::erase(node.status.applied->services, "ucarp");
  }
  for (int i = 1; i <= registry; ++i) {
    w.all.push_back("r" + std::to_string(i));
    w.fleet.registry(w.all.back(), i == 1 ? "dtr-controller" : "dtr-replica");
  }
  for (int i = 1; i <= 4; ++i) {
    w.all.push_back("n" + std::to_string(i));
    random_node(w.fleet.fleet.add(w.all.back()));
  }
  random_globals(w);
  for (auto& [id, node] : w.fleet.fleet.snapshot().nodes) {
    if (once_in(5) && once_in(5)) node.status.presence = fleet::Presence::kDisappeared;
  }
  return w;
}

Json random_ucp_request(const UcpWorld& w) {
  std::set<std::string> nodes;
  for (int i = up_to(3); i >= 0; --i) nodes.insert(one_of(w.all));
  Json body{{"kind", one_of<std::string>({"commission", "commission", "commission", "update"})},
            {"nodes", nodes}};
  if (body["kind"] == "commission") {
    if (once_in(5)) body["capabilities"] = {one_of<std::string>({"dtr-controller", "dtr-replica"})};
    if (once_in(5)) body["host_group"] = one_of<std::string>({"service-master", "service-worker"});
    if (once_in(5)) body["force"] = true;
  } else {
    body["allow_outage"] = true;
    body["max_unavailable"] = "100%";
  }
  return body;
}

bool has(const Names& list, const std::string& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// A node as the plan leaves it.
void check_node(const UcpWorld& w, const Plan& plan, const Stage& site, const std::string& id) {
  const auto& snapshot = const_cast<UcpWorld&>(w).fleet.fleet.snapshot();
  const fleet::Node& node = snapshot.nodes.at(id);
  const Names& services = site.services.at(id);
  const bool manager = plan.roles.at(id) == fleet::Role::kManager;
  // Who may hold the address carries what is behind it, and only managers may.
  if (has(services, "ucarp")) RC_ASSERT(manager && has(services, "etcd") && has(services, "ucp"));
  RC_ASSERT(manager == has(services, "etcd"));
  if (!has(services, "dtr")) return;
  RC_ASSERT(!manager && !has(services, "ucarp"));
  RC_ASSERT(!has(services, "contiv_network"));
  const Json& globals = snapshot.globals;
  const bool local = globals.value("dtr_storage", "local") == "local";
  if (plan.kind != "commission") return;
  RC_ASSERT(!local || !node.status.hardware || node.status.hardware->series != "b-series");
  RC_ASSERT(globals.value("dtr_http_port", 80) != globals.value("dtr_https_port", 443));
  // 256 + 256 + 2048 + 4096 MB are what its services need at least.
  RC_ASSERT(!node.status.hardware || node.status.hardware->memory_mb >= 6656);
}

void check_fleet(const UcpWorld& w, const Plan& plan, const Stage& site) {
  const auto& snapshot = const_cast<UcpWorld&>(w).fleet.fleet.snapshot();
  std::set<std::string> targets(plan.targets.begin(), plan.targets.end());
  int registry = 0, controllers = 0, managers = 0, fresh_registry = 0, fresh_managers = 0;
  for (const std::string& id : targets) {
    const bool dtr = has(site.services.at(id), "dtr");
    registry += dtr;
    fresh_registry += dtr;
    const auto capabilities = plan.changes.at(id).capabilities;
    controllers += has(capabilities, "dtr-controller");
    fresh_managers += plan.roles.at(id) == fleet::Role::kManager;
  }
  managers = fresh_managers;
  for (const auto& [id, node] : snapshot.nodes) {
    if (targets.count(id) || !node.status.applied) continue;
    registry += has(node.status.applied->services, "dtr");
    controllers += has(node.status.applied->capabilities, "dtr-controller");
    managers += has(node.status.applied->services, "etcd");
  }
  const Json& globals = snapshot.globals;
  RC_ASSERT(controllers <= 1);
  if (fresh_registry > 0) {
    RC_ASSERT(controllers == 1);
    RC_ASSERT(managers > 0);
    RC_ASSERT(registry < 2 || globals.value("dtr_storage", "local") != "local");
  }
  if (fresh_managers > 0 && managers > 1)
    RC_ASSERT(globals.contains("service_vip") || globals.value("vip_provider", "") == "external");
}

struct Seen {
  int accepted = 0, refused = 0, registries = 0;
};

void plan_in_a_random_ucp_world(const catalog::Catalog& catalog, Seen& seen) {
  UcpWorld w = random_ucp_world();
  const auto request = parse_request(random_ucp_request(w));
  RC_ASSERT(request.has_value());
  const fleet::Snapshot before = w.fleet.fleet.snapshot();
  const auto plan = make_plan(w.fleet.fleet.snapshot(), catalog, *request);
  RC_ASSERT(before.nodes == w.fleet.fleet.snapshot().nodes);
  if (!plan) {
    ++seen.refused;
    return;
  }
  ++seen.accepted;
  for (const Stage& s : plan->stages) {
    if (s.name != "site") continue;
    for (const std::string& id : s.nodes) {
      check_node(w, *plan, s, id);
      seen.registries += has(s.services.at(id), "dtr");
    }
    if (plan->kind == "commission") check_fleet(w, *plan, s);
  }
}

TEST(PlacementProperties, WhatEveryAcceptedPlanKeeps) {
  const catalog::Catalog catalog = ucp_catalog();
  Seen seen;
  // Nine of ten random requests are refused: so many worlds that a poor draw is no failure.
  constexpr int kWorlds = 10;
  EXPECT_TRUE(rc::check("accepted plans keep the rules, refusals change nothing", [&] {
    for (int i = 0; i < kWorlds; ++i) plan_in_a_random_ucp_world(catalog, seen);
  }));
  EXPECT_GT(seen.accepted, 5);
  EXPECT_GT(seen.refused, 5);
  EXPECT_GT(seen.registries, 0);
}

// By the table of the lifecycle alone: from every state something an operator can ask for leads, in
// a few steps, to a node in service and to one out of it.
TEST(PlacementProperties, EveryStateHasAWayOut) {
  using fleet::Event;
  using fleet::Lifecycle;
  const std::vector<Lifecycle> kAll{Lifecycle::kUnallocated, Lifecycle::kProvisioning,
                                    Lifecycle::kAllocated,   Lifecycle::kMaintenance,
                                    Lifecycle::kCancelled,   Lifecycle::kDecommissioned};
  const std::set<Event> asked{Event::kCommission, Event::kMaintain, Event::kDecommission};
  for (Lifecycle from : kAll) {
    std::set<Lifecycle> reached{from};
    bool can_ask = false;
    for (const fleet::Transition& t : fleet::transitions())
      can_ask = can_ask || (t.from == from && asked.count(t.event));
    EXPECT_TRUE(can_ask) << static_cast<int>(from);
    for (int step = 0; step < 6; ++step) {
      for (const fleet::Transition& t : fleet::transitions()) {
        if (reached.count(t.from)) reached.insert(t.to);
      }
    }
    EXPECT_EQ(reached.count(Lifecycle::kAllocated), 1U) << static_cast<int>(from);
    EXPECT_EQ(reached.count(Lifecycle::kDecommissioned), 1U) << static_cast<int>(from);
  }
}

}  // namespace
}  // namespace clusterctl::plan
