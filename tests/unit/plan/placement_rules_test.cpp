// For each placement rule a request that is refused with its code, and its accepted neighbour: the
// same fleet and request without the one thing that is wrong. Through the whole planner, so that a
// rule nobody asks is noticed.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "fleet/conditions.h"
#include "fleet/placement.h"
#include "ucp_fixture.h"

namespace clusterctl::plan {
namespace {

using fleet::Presence;

struct Case {
  std::string_view code;
  std::string_view what;
  Json request;                                 // accepted on `fleet` after `arrange`
  std::function<void(UcpFleet&)> arrange;       // may be empty
  std::function<void(UcpFleet&, Json&)> spoil;  // what makes it wrong
};

const Json kWorker = commission({"n1"}, "service-worker");
const Json kManager = commission({"n1"}, "service-master");
const Json kTwoManagers = commission({"n1", "n2"}, "service-master");
const Json kRegistry = commission({"n1"}, "service-worker", {"dtr-controller"});
const Json kReplica = commission({"n1"}, "service-worker", {"dtr-replica"});

void shared(UcpFleet& f) {
  f.fleet.snapshot().globals["dtr_storage"] = "nfs";
}
void with_registry(UcpFleet& f) {
  shared(f);
  f.registry("r1", "dtr-controller");
  f.registry("r2", "dtr-replica");
}
fleet::Hardware& hardware(fleet::Node& node) {
  if (!node.status.hardware) node.status.hardware.emplace();
  return *node.status.hardware;
}
void global(UcpFleet& f, const std::string& name, Json value) {
  f.fleet.snapshot().globals[name] = std::move(value);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"not_accepted",
       "not accepted",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { f["n1"].spec.acceptance = fleet::Acceptance::kPending; }},
      {"not_in_service",
       "a spare",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { f["n1"].spec.allocation = fleet::Allocation::kSpare; }},
      {"identity_conflict",
       "two machines answer",
       kWorker,
       {},
       [](UcpFleet& f, Json&) {
         set_condition(f["n1"].status, fleet::condition::kIdentityConflict, "r", "", fleet::at(1));
       }},
      {"no_manager",
       "a worker without a cluster",
       commission({"n1"}, "service-worker"),
       {},
       [](UcpFleet& f, Json&) { f.fleet.snapshot().nodes.erase(f["m1"].id); }},
      {"no_reachable_manager",
       "nobody to join through",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { f["m1"].status.presence = Presence::kDisappeared; }},
      {"same_name",
       "two of one name",
       commission({"n1xxxxxxxxxx"}, "service-worker"),
       {},
       [](UcpFleet& f, Json&) { f["n1"].name = "m1"; }},
      {"same_addr",
       "two at one address",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { f["n1"].spec.addr = f["m1"].spec.addr; }},
      {"same_machine_id",
       "one machine, two records",
       kWorker,
       {},
       [](UcpFleet& f, Json&) {
         hardware(f["n1"]).machine_id = hardware(f["m1"]).machine_id = "abc";
       }},
      {"same_serial",
       "one serial",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { hardware(f["n1"]).serial = hardware(f["m1"]).serial = "FCH1"; }},
      {"shared_serial",
       "one serial, two installations",
       kWorker,
       {},
       [](UcpFleet& f, Json&) {
         hardware(f["n1"]).serial = hardware(f["m1"]).serial = "FCH1";
         hardware(f["n1"]).machine_id = "a";
         hardware(f["m1"]).machine_id = "b";
       }},
      {"vip_required",
       "a second manager",
       kTwoManagers,
       {},
       [](UcpFleet& f, Json&) { f.fleet.snapshot().globals.erase("service_vip"); }},
      {"bad_vip",
       "no address",
       kManager,
       {},
       [](UcpFleet& f, Json&) { global(f, "service_vip", "vip"); }},
      {"vip_taken",
       "the address of a node",
       kManager,
       {},
       [](UcpFleet& f, Json&) { global(f, "service_vip", f["m1"].spec.addr); }},
      {"bad_subnet", "no network", kManager,
       [](UcpFleet& f) { global(f, "control_subnet", "10.0.0.0/24"); },
       [](UcpFleet& f, Json&) { global(f, "control_subnet", "10.0.0.0/99"); }},
      {"vip_outside", "outside the control subnet", kManager,
       [](UcpFleet& f) { global(f, "control_subnet", "10.0.0.0/24"); },
       [](UcpFleet& f, Json&) { global(f, "service_vip", "10.0.1.200"); }},
      {"vip_differs",
       "another address than the managers that are there",
       kManager,
       {},
       [](UcpFleet& f, Json&) { f["n1"].spec.vars["service_vip"] = "10.0.0.201"; }},
      {"vip_not_carried",
       "a manager from before the address",
       kManager,
       {},
       [](UcpFleet& f, Json&) { std::erase(f["m1"].status.applied->services, "ucarp"); }},
      {"ucp_with_dtr",
       "the registry on a controller",
       kRegistry,
       {},
       [](UcpFleet&, Json& r) { r["capabilities"].push_back("ucp-controller"); }},
      {"dtr_twice",
       "controller and replica",
       kRegistry,
       {},
       [](UcpFleet&, Json& r) { r["capabilities"].push_back("dtr-replica"); }},
      {"second_dtr_controller", "a second registry", kReplica, with_registry,
       [](UcpFleet&, Json& r) { r["capabilities"] = {"dtr-controller"}; }},
      {"joins_as_worker",
       "a registry node in a group of managers",
       kRegistry,
       {},
       [](UcpFleet&, Json& r) { r["host_group"] = "service-master"; }},
      {"no_registry", "a replica of nothing", commission({"n1"}, "service-worker", {"dtr-replica"}),
       with_registry,
       [](UcpFleet& f, Json&) {
         for (const char* name : {"r1", "r2"}) f.fleet.snapshot().nodes.erase(f[name].id);
       }},
      {"registry_unhealthy", "no healthy node of the registry", kReplica, with_registry,
       [](UcpFleet& f, Json&) {
         f["r1"].status.presence = Presence::kDisappeared;
         f["r2"].status.services["dtr"].healthy = false;
       }},
      {"unknown_storage", "storage nobody knows", kRegistry, shared,
       [](UcpFleet& f, Json&) { global(f, "dtr_storage", "nsf"); }},
      {"storage_differs", "other storage than the registry's", kReplica, with_registry,
       [](UcpFleet& f, Json&) { f["n1"].spec.vars["dtr_storage"] = "s3"; }},
      {"local_storage_on_blade", "images on a blade", kRegistry,
       [](UcpFleet& f) { hardware(f["n1"]).series = "c-series"; },
       [](UcpFleet& f, Json&) { hardware(f["n1"]).series = "b-series"; }},
      {"storage_not_shared", "two with disks of their own", kReplica, with_registry,
       [](UcpFleet& f, Json&) { f.fleet.snapshot().globals.erase("dtr_storage"); }},
      {"local_storage", "images on the node's own disk", kRegistry, shared,
       [](UcpFleet& f, Json&) { f.fleet.snapshot().globals.erase("dtr_storage"); }},
      {"unknown_bootstrap_node", "a registry node nobody knows", kRegistry,
       [](UcpFleet& f) { global(f, "dtr_bootstrap_node_name", "n1"); },
       [](UcpFleet& f, Json&) { global(f, "dtr_bootstrap_node_name", f["n1"].spec.addr); }},
      {"registry_contradiction", "two registry controllers by two words", kRegistry,
       [](UcpFleet& f) { global(f, "dtr_bootstrap_node_name", "n1"); },
       [](UcpFleet& f, Json&) { global(f, "dtr_bootstrap_node_name", "n2"); }},
      {"dtr_replica_everywhere", "every node a replica", kReplica, with_registry,
       [](UcpFleet& f, Json&) { global(f, "dtr_replica", true); }},
      {"unused_registry_variable", "registry variables without a registry", kWorker,
       [](UcpFleet& f) { global(f, "dtr_bootstrap_node_name", "n2"); },
       [](UcpFleet& f, Json&) { global(f, "dtr_bootstrap_node_name", "n9"); }},
      {"misplaced_variable", "the first manager's name one level too deep", kManager,
       [](UcpFleet& f) {
         global(f, "env", Json{{"HTTP_PROXY", "x"}});
       },
       [](UcpFleet& f, Json&) {
         global(f, "env", Json{{"ucp_bootstrap_node_name", "n1"}});
       }},
      {"unknown_first_manager", "a first manager nobody knows", kManager,
       [](UcpFleet& f) { global(f, "ucp_bootstrap_node_name", "m1"); },
       [](UcpFleet& f, Json&) { global(f, "ucp_bootstrap_node_name", "m9"); }},
      {"first_manager_missing", "a first manager that does not come",
       commission({"n1", "n2"}, "service-master"),
       [](UcpFleet& f) {
         f.fleet.snapshot().nodes.erase(f["m1"].id);
         global(f, "ucp_bootstrap_node_name", "n2");
       },
       [](UcpFleet&, Json& r) { r["nodes"] = {"n1"}; }},
      {"own_host",
       "the controller's own machine",
       kWorker,
       {},
       [](UcpFleet& f, Json&) { f.fleet.snapshot().own_host.addresses = {f["n1"].spec.addr}; }},
      {"too_little_memory", "less than its services need", kWorker,
       [](UcpFleet& f) { hardware(f["n1"]).memory_mb = 2560; },
       [](UcpFleet& f, Json&) { hardware(f["n1"]).memory_mb = 2559; }},
      {"bad_port",
       "a port that is none",
       kRegistry,
       {},
       [](UcpFleet& f, Json&) { global(f, "dtr_https_port", "https"); }},
      {"port_conflict",
       "two on one port",
       kRegistry,
       {},
       [](UcpFleet& f, Json&) { global(f, "dtr_http_port", 443); }},
      {"forbidden_together",
       "container network beside the registry",
       commission({"n1"}, "service-worker", {"can-run-user-containers", "dtr-controller"}),
       {},
       [](UcpFleet& f, Json&) { global(f, "contiv_network_version", "1.0"); }},
      {"missing_service", "storage by a service that is nowhere", kRegistry, shared,
       [](UcpFleet& f, Json&) { global(f, "dtr_storage", "volplugin"); }},
      {"unhealthy_service",
       "the registry on an unhealthy UCP",
       kRegistry,
       {},
       [](UcpFleet& f, Json&) { f["m1"].status.services["ucp"].healthy = false; }},
      {"number_as_version", "a version that is a number", kWorker,
       [](UcpFleet& f) { global(f, "docker_version", "20.10"); },
       [](UcpFleet& f, Json&) { global(f, "docker_version", 20.1); }},
      {"unknown_service", "a version of nothing", kWorker,
       [](UcpFleet& f) {
         f["n1"].spec.versions = {{"docker", "20.10"}};
       },
       [](UcpFleet& f, Json&) {
         f["n1"].spec.versions = {{"dokcer", "20.10"}};
       }},
      {"even_managers",
       "a second manager",
       kTwoManagers,
       {},
       [](UcpFleet&, Json& r) { r["nodes"] = {"n1"}; }},
      {"many_managers",
       "an eighth manager",
       commission({"n1", "n2", "n3", "n4", "n5", "n6"}, "service-master"),
       {},
       [](UcpFleet&, Json& r) { r["nodes"] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"}; }},
      {"even_registry", "a second registry node", kReplica, with_registry,
       [](UcpFleet& f, Json&) { f.fleet.snapshot().nodes.erase(f["r2"].id); }},
  };
  return kCases;
}

class PlacementRules : public testing::TestWithParam<Case> {};

TEST_P(PlacementRules, ARefusedRequestAndItsAcceptedNeighbour) {
  const Case& c = GetParam();
  const catalog::Catalog catalog = ucp_catalog();
  UcpFleet f;
  f.manager("m1");
  for (int i = 1; i <= 8; ++i) f.fleet.add("n" + std::to_string(i));
  if (c.arrange) c.arrange(f);
  Json body = c.request;
  const auto codes = [&](bool& accepted) {
    std::set<std::string> out;
    const auto request = parse_request(body);
    EXPECT_TRUE(request) << request.error().line();
    const auto plan = make_plan(f.fleet.snapshot(), catalog, *request);
    accepted = plan.has_value();
    const auto& list = plan ? plan->warnings : plan.error().problems;
    for (const Problem& p : list) {
      out.insert(p.code);
      if (p.code != c.code) continue;
      EXPECT_FALSE(p.message.empty());
      EXPECT_FALSE(p.hint.empty()) << p.message;
      EXPECT_EQ((p.message + p.hint).find('\n'), std::string::npos);
    }
    return out;
  };
  const bool is_warning = [&] {
    static const std::set<std::string_view> kWarnings{
        "shared_serial", "vip_not_carried", "joins_as_worker", "local_storage",
        "even_managers", "many_managers",   "even_registry",   "unused_registry_variable"};
    return kWarnings.count(c.code) != 0;
  }();
  bool accepted = false;
  const auto before = codes(accepted);
  EXPECT_TRUE(accepted) << "the neighbour of " << c.code << ": " << testing::PrintToString(before);
  EXPECT_EQ(before.count(std::string(c.code)), 0U) << c.code;
  c.spoil(f, body);
  const fleet::Snapshot untouched = f.fleet.snapshot();
  const auto after = codes(accepted);
  EXPECT_EQ(accepted, is_warning) << c.code << ": " << testing::PrintToString(after);
  EXPECT_EQ(after.count(std::string(c.code)), 1U)
      << c.code << ": " << testing::PrintToString(after);
  EXPECT_EQ(untouched.nodes, f.fleet.snapshot().nodes);
}

INSTANTIATE_TEST_SUITE_P(EachCode, PlacementRules, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.code); });

TEST(PlacementRulesTable, EveryCodeOfEveryRuleHasItsCase) {
  std::set<std::string_view> shown;
  for (const Case& c : cases()) EXPECT_TRUE(shown.insert(c.code).second) << c.code;
  for (const fleet::Rule& rule : fleet::placement_rules()) {
    for (std::string_view code : rule.codes)
      EXPECT_EQ(shown.count(code), 1U) << code << " (" << rule.name << ")";
  }
}

// ---- more about the registry than one case each ----

class Registry : public testing::Test {
 protected:
  Registry() {
    f_.manager("m1");
    for (const char* name : {"n1", "n2", "n3"}) f_.fleet.add(name, "service-worker");
    shared(f_);
  }
  Result<Plan> plan(const Json& body) {
    return make_plan(f_.fleet.snapshot(), catalog_, *parse_request(body));
  }
  std::vector<std::string> refused(const Json& body) {
    std::vector<std::string> out;
    const auto p = plan(body);
    if (p) return out;
    for (const Problem& problem : p.error().problems) out.push_back(problem.code);
    return out;
  }
  using Codes = std::vector<std::string>;
  const catalog::Catalog catalog_ = ucp_catalog();
  UcpFleet f_;
};

TEST_F(Registry, ANodeVariableOrAGlobalSaysTheSameAsACapability) {
  f_.fleet.snapshot().globals["dtr_bootstrap_node_name"] = "n1";
  f_["n2"].spec.vars["dtr_replica"] = true;
  const auto p = plan({{"kind", "commission"}, {"nodes", {"n1", "n2", "n3"}}});
  ASSERT_TRUE(p) << p.error().line();
  const auto capabilities = [&](const std::string& n) {
    return p->changes.at(f_[n].id).capabilities;
  };
  EXPECT_EQ(capabilities("n1"),
            (Codes{"can-run-user-containers", "dtr-controller", "service-worker"}));
  EXPECT_EQ(capabilities("n2"),
            (Codes{"can-run-user-containers", "dtr-replica", "service-worker"}));
  EXPECT_EQ(capabilities("n3"), Codes{}) << "the others are as they were";
  for (const char* name : {"n1", "n2"})
    EXPECT_EQ(p->stages.back().services.at(f_[name].id).back(), "dtr") << name;
}

TEST_F(Registry, ANodeOfTheRegistryIsAWorkerWhateverItsGroup) {
  f_.fleet.snapshot().globals["dtr_bootstrap_node_name"] = "n1";
  const auto p =
      plan({{"kind", "commission"}, {"nodes", {"n1"}}, {"host_group", "service-master"}});
  ASSERT_TRUE(p) << p.error().line();
  EXPECT_EQ(p->roles.at(f_["n1"].id), fleet::Role::kWorker);
  EXPECT_EQ(p->changes.at(f_["n1"].id).capabilities, Codes{"dtr-controller"})
      << "nobody asked for ucp-controller, which the registry excludes";
  const auto& services = p->stages.back().services.at(f_["n1"].id);
  EXPECT_EQ(services, (Codes{"base", "docker", "ucp", "dtr"})) << "no etcd, no virtual address";
}

TEST_F(Registry, ContradictionsInEveryDirection) {
  const Json as_controller = commission({"n1"}, "service-worker", {"dtr-controller"});
  const Json as_replica = commission({"n1", "n2"}, "service-worker", {"dtr-replica"});
  f_["n1"].spec.vars["dtr_replica"] = true;
  EXPECT_EQ(refused(as_controller), Codes{"registry_contradiction"});
  f_["n1"].spec.vars["dtr_replica"] = "yes";
  EXPECT_EQ(refused(as_controller), Codes{"registry_contradiction"}) << "neither true nor false";
  f_["n1"].spec.vars["dtr_replica"] = false;
  EXPECT_EQ(refused(as_controller), Codes{});
  f_.registry("r1", "dtr-controller");
  EXPECT_EQ(refused(as_replica), Codes{"registry_contradiction"});
  f_["n1"].spec.vars = Json::object();
  EXPECT_EQ(refused(as_replica), Codes{});
  f_.fleet.snapshot().globals["dtr_bootstrap_node_name"] = "n1";
  EXPECT_EQ(refused(as_replica), Codes{"registry_contradiction"});
}

TEST_F(Registry, ComesUpInOneRequestWithItsClusterOrItsController) {
  EXPECT_EQ(refused(commission({"n1"}, "service-worker", {"dtr-replica"})), Codes{"no_registry"});
  f_["n2"].spec.capabilities = {"dtr-controller"};
  f_["n1"].spec.capabilities = {"dtr-replica"};
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"n1", "n2"}}}), Codes{});
  f_.fleet.snapshot().nodes.erase(f_["m1"].id);
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"n1", "n2"}}}),
            (Codes{"no_manager", "no_manager", "missing_service", "missing_service"}));
  f_["n3"].spec.host_group = "service-master";
  EXPECT_EQ(refused({{"kind", "commission"}, {"nodes", {"n1", "n2", "n3"}}}), Codes{});
}

TEST_F(Registry, PortsMeetOnlyWhereBothAreOpen) {
  // A worker's half of ucp opens no 443: only the registry does there.
  EXPECT_EQ(refused(commission({"n1"}, "service-worker", {"dtr-controller"})), Codes{});
  // A controller moved onto a port of etcd is told which variable moves it.
  f_.fleet.snapshot().globals["ucp_controller_port"] = 2379;
  const auto p = plan(commission({"n1"}, "service-master"));
  ASSERT_FALSE(p);
  EXPECT_NE(p.error().problems[0].hint.find("ucp_controller_port"), std::string::npos)
      << p.error().problems[0].hint;
}

TEST_F(Registry, ItsMembersAreCountedLikeAnyOthers) {
  for (const char* name : {"r1", "r2", "r3"})
    f_.registry(name, name == std::string("r1") ? "dtr-controller" : "dtr-replica");
  const auto down = [&](const std::string& name) {
    f_[name].status.presence = Presence::kDisappeared;
  };
  const Json live{{"kind", "decommission"}, {"nodes", {"r2"}}};
  const auto p = plan(live);
  ASSERT_TRUE(p) << p.error().line();
  EXPECT_EQ(p->quorum.at("dtr").total_before, 3);
  EXPECT_EQ(p->quorum.at("dtr").total_after, 2);
  EXPECT_EQ(p->quorum.count("etcd"), 0U);
  down("r3");
  EXPECT_EQ(refused(live), Codes{"quorum"}) << "two of three answer, one of two would not do";
  const Json dead{
      {"kind", "decommission"}, {"nodes", {"r3"}}, {"force", true}, {"powered_off", true}};
  EXPECT_EQ(refused(dead), Codes{});
  EXPECT_EQ(refused(commission({"n1"}, "service-worker", {"dtr-replica"})), Codes{"quorum"})
      << "a dead one is removed before a new one is added";
  down("r2");
  EXPECT_EQ(refused(dead), Codes{"quorum"});
}

TEST_F(Registry, TheLastOneGoesOnlyWhenThatIsMeant) {
  f_.registry("r1", "dtr-controller");
  EXPECT_EQ(refused({{"kind", "decommission"}, {"nodes", {"r1"}}}), Codes{"quorum"});
  EXPECT_EQ(refused({{"kind", "decommission"}, {"nodes", {"r1"}}, {"force", true}}), Codes{});
}

TEST_F(Registry, ItsNodesAreUpdatedOneByOne) {
  for (const char* name : {"r1", "r2", "r3"})
    f_.registry(name, name == std::string("r1") ? "dtr-controller" : "dtr-replica");
  const auto p =
      plan({{"kind", "update"}, {"nodes", {"r1", "r2", "r3"}}, {"max_unavailable", "3"}});
  ASSERT_TRUE(p) << p.error().line();
  std::map<int, size_t> sizes;
  std::map<int, bool> watched;
  for (const Stage& s : p->stages) {
    if (s.name == "site") sizes[s.batch] += s.nodes.size();
    if (s.name == "observe" && s.batch > 0) watched[s.batch] = true;
  }
  EXPECT_EQ(sizes, (std::map<int, size_t>{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_TRUE(watched[2] && watched[3]) << "looked at again before each further one";
}

TEST_F(Registry, TheFirstManagerNamedBeginsTheCluster) {
  f_.fleet.snapshot().nodes.erase(f_["m1"].id);
  f_.fleet.snapshot().globals["ucp_bootstrap_node_name"] = "n2";
  const auto p = plan(commission({"n1", "n2", "n3"}, "service-master"));
  ASSERT_TRUE(p) << p.error().line();
  EXPECT_EQ(p->stages.back().vars.initiator, "n2");
  EXPECT_EQ(p->targets[0], f_["n2"].id);
}

TEST_F(Registry, TheControllersOwnMachineByAddressOrMachineId) {
  f_.fleet.snapshot().own_host.machine_id = "ABC";
  const Json request = commission({"n1"}, "service-worker");
  EXPECT_EQ(refused(request), Codes{});
  f_["n1"].status.hardware.emplace().machine_id = "abc";
  EXPECT_EQ(refused(request), Codes{"own_host"});
  Json meant = request;
  meant["controller_host"] = true;
  EXPECT_EQ(refused(meant), Codes{});
}

}  // namespace
}  // namespace clusterctl::plan
