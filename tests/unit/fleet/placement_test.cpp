#include "fleet/placement.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "fakes/fleet_builder.h"

namespace clusterctl::fleet {
namespace {

// One candidate of each role on a cluster with one manager, everything in order: each test breaks
// one thing.
class PlacementTest : public testing::Test {
 protected:
  PlacementTest() {
    fleet_.manager("m1");
    fleet_.add("n1");
    fleet_.add("n2");
    input_.snapshot = &fleet_.snapshot();
    input_.managers = {&fleet_["m1"]};
    input_.peer = &fleet_["m1"];
  }
  Candidate& candidate(const std::string& name, Role role = Role::kWorker) {
    Candidate c;
    c.node = &fleet_[name];
    c.role = role;
    c.host_group = role == Role::kManager ? "service-master" : "service-worker";
    c.services = {"base", "docker"};
    input_.candidates.push_back(c);
    return input_.candidates.back();
  }
  std::vector<std::string> codes() {
    std::vector<std::string> out;
    const Findings found = check_placement(input_);
    for (const Problem& p : found.problems.list()) {
      out.push_back(p.code);
      EXPECT_FALSE(p.message.empty());
      EXPECT_FALSE(p.hint.empty()) << p.code;
      EXPECT_FALSE(p.node.empty()) << p.code;
    }
    for (const Problem& p : found.warnings) out.push_back("warning " + p.code);
    return out;
  }
  using Codes = std::vector<std::string>;

  FleetBuilder fleet_;
  Placement input_;
};

TEST_F(PlacementTest, NothingWrong) {
  candidate("n1");
  candidate("n2");
  EXPECT_EQ(codes(), Codes{});
}

TEST_F(PlacementTest, NotAcceptedOrNotInService) {
  candidate("n1");
  fleet_["n1"].spec.acceptance = Acceptance::kPending;
  EXPECT_EQ(codes(), Codes{"not_accepted"});
  fleet_["n1"].spec.acceptance = Acceptance::kRejected;
  EXPECT_EQ(codes(), Codes{"not_accepted"});
  fleet_["n1"].spec.acceptance = Acceptance::kAccepted;
  fleet_["n1"].spec.allocation = Allocation::kSpare;
  EXPECT_EQ(codes(), Codes{"not_in_service"});
  fleet_["n1"].spec.allocation = Allocation::kRetired;
  EXPECT_EQ(codes(), Codes{"not_in_service"});
  fleet_["n1"].spec.allocation = Allocation::kInService;
  set_condition(fleet_["n1"].status, condition::kIdentityConflict, "n9 answers", "", at(1));
  EXPECT_EQ(codes(), Codes{"identity_conflict"});
}

TEST_F(PlacementTest, AWorkerNeedsAManager) {
  candidate("n1");
  input_.peer = nullptr;
  EXPECT_EQ(codes(), Codes{"no_reachable_manager"});
  input_.managers.clear();
  EXPECT_EQ(codes(), Codes{"no_manager"});
  candidate("n2", Role::kManager);
  EXPECT_EQ(codes(), Codes{}) << "the manager comes in the same request";
}

TEST_F(PlacementTest, AFurtherManagerNeedsOneThatAnswers) {
  candidate("n1", Role::kManager).vars = {{"service_vip", "10.0.0.100"}};
  input_.peer = nullptr;
  EXPECT_EQ(codes(), (Codes{"no_reachable_manager", "warning even_managers"}));
}

TEST_F(PlacementTest, IdentitiesAreUnique) {
  candidate("n1");
  candidate("n2");
  fleet_["n1"].spec.addr = fleet_["m1"].spec.addr;
  EXPECT_EQ(codes(), Codes{"same_addr"});
  fleet_["n1"].spec.addr = "fd00::1";
  fleet_["n2"].spec.addr = "FD00:0::1";
  EXPECT_EQ(codes(), Codes{"same_addr"});
  fleet_["n2"].spec.addr = "n2.example.com";
  fleet_["n1"].status.hardware = fleet_["m1"].status.hardware = Hardware{};
  EXPECT_EQ(codes(), Codes{}) << "empty values are not equal";
  fleet_["n1"].status.hardware->machine_id = fleet_["m1"].status.hardware->machine_id = "abc";
  EXPECT_EQ(codes(), Codes{"same_machine_id"});
  fleet_["m1"].status.lifecycle = Lifecycle::kDecommissioned;
  EXPECT_EQ(codes(), Codes{}) << "only commissioned ones count";
}

TEST_F(PlacementTest, EqualSerials) {
  candidate("n1");
  Hardware& mine = fleet_["n1"].status.hardware.emplace();
  Hardware& theirs = fleet_["m1"].status.hardware.emplace();
  for (const char* nothing :
       {"", "0", "None", "To Be Filled By O.E.M.", "000000", "Not Specified"}) {
    mine.serial = theirs.serial = nothing;
    EXPECT_EQ(codes(), Codes{}) << nothing;
  }
  mine.serial = "FCH1234";
  theirs.serial = "fch1234 ";
  EXPECT_EQ(codes(), Codes{"same_serial"}) << "nothing tells them apart";
  mine.machine_id = "a";
  theirs.machine_id = "b";
  EXPECT_EQ(codes(), Codes{"warning shared_serial"}) << "two installations that both answer";
  fleet_["m1"].status.presence = Presence::kDisappeared;
  EXPECT_EQ(codes(), Codes{"same_serial"}) << "most likely installed again";
}

TEST_F(PlacementTest, TheVirtualAddress) {
  Candidate& c = candidate("n1", Role::kManager);
  candidate("n2", Role::kManager);
  Candidate& first = input_.candidates[0];
  (void)c;
  EXPECT_EQ(codes(), (Codes{"vip_required", "vip_required"}));
  for (Candidate& each : input_.candidates) each.vars = {{"vip_provider", "external"}};
  EXPECT_EQ(codes(), Codes{});
  const auto vip = [&](const Json& value) {
    for (Candidate& each : input_.candidates)
      each.vars = {{"service_vip", value}, {"control_subnet", "10.0.0.0/24"}};
  };
  vip("10.0.0.100");
  EXPECT_EQ(codes(), Codes{});
  vip("10.0.1.100");
  EXPECT_EQ(codes(), (Codes{"vip_outside", "vip_outside"}));
  vip("10.0.0.255");
  EXPECT_EQ(codes(), (Codes{"vip_outside", "vip_outside"}));
  vip("fd00::1");
  EXPECT_EQ(codes(), (Codes{"vip_outside", "vip_outside"}));
  vip(fleet_["m1"].spec.addr);
  EXPECT_EQ(codes(), (Codes{"vip_taken", "vip_taken"}));
  for (const Json& bad :
       {Json("vip"), Json("10.0.0.1/24"), Json(7), Json("$(id)"), Json::array({1})}) {
    vip(bad);
    EXPECT_EQ(codes(), (Codes{"bad_vip", "bad_vip"})) << bad;
  }
  vip("10.0.0.100");
  first.vars["service_vip"] = "10.0.0.101";
  EXPECT_EQ(codes(), Codes{"vip_differs"});
  vip("10.0.0.100");
  first.vars["control_subnet"] = "nonsense";
  EXPECT_EQ(codes(), Codes{"bad_subnet"});
}

TEST_F(PlacementTest, OneManagerNeedsNoVirtualAddress) {
  input_.managers.clear();
  input_.peer = nullptr;
  candidate("n1", Role::kManager);
  EXPECT_EQ(codes(), Codes{});
}

TEST_F(PlacementTest, VipWorksInIpv6) {
  input_.managers.clear();
  input_.peer = nullptr;
  candidate("n1", Role::kManager).vars = {{"service_vip", "fd00::100"},
                                          {"control_subnet", "fd00::/64"}};
  EXPECT_EQ(codes(), Codes{});
  fleet_["n2"].spec.addr = "FD00::0:100";
  EXPECT_EQ(codes(), Codes{"vip_taken"});
}

TEST_F(PlacementTest, RegistryNodes) {
  const Json nfs{{"dtr_storage", "nfs"}};
  Candidate& a = candidate("n1");
  a.vars = nfs;
  a.capabilities = {"dtr-controller", "ucp-controller"};
  EXPECT_EQ(codes(), Codes{"ucp_with_dtr"});
  a.capabilities = {"dtr-controller", "dtr-replica"};
  EXPECT_EQ(codes(), Codes{"dtr_twice"});
  a.capabilities = {"dtr-controller"};
  EXPECT_EQ(codes(), Codes{});
  Candidate& b = candidate("n2");
  b.vars = nfs;
  b.capabilities = {"dtr-controller"};
  EXPECT_EQ(codes(), (Codes{"second_dtr_controller", "warning even_registry"}));
}

TEST_F(PlacementTest, Memory) {
  candidate("n1").memory_mb = 4096;
  EXPECT_EQ(codes(), Codes{}) << "unknown hardware is no reason";
  fleet_["n1"].status.hardware = Hardware{};
  EXPECT_EQ(codes(), Codes{});
  fleet_["n1"].status.hardware->memory_mb = 4095;
  EXPECT_EQ(codes(), Codes{"too_little_memory"});
  fleet_["n1"].status.hardware->memory_mb = 4096;
  EXPECT_EQ(codes(), Codes{});
}

TEST_F(PlacementTest, Ports) {
  Candidate& c = candidate("n1");
  c.ports = {{"ucp", "ucp_controller_port", 443}, {"dtr", "dtr_https_port", 443}};
  EXPECT_EQ(codes(), Codes{"port_conflict"});
  const Problem p = check_placement(input_).problems.list()[0];
  EXPECT_EQ(p.message, "n1: ucp (ucp_controller_port) and dtr (dtr_https_port) both want port 443");
  EXPECT_EQ(p.hint, "set dtr_https_port to a free port");
  c.ports = {{"ucp", "ucp_controller_port", 0}};
  EXPECT_EQ(codes(), Codes{"bad_port"});
  c.ports = {{"a", "", 80}, {"b", "", 80}};
  EXPECT_EQ(codes(), Codes{"port_conflict"});
}

TEST_F(PlacementTest, ServicesTogether) {
  Candidate& c = candidate("n1");
  c.forbids = {{"dtr", "contiv_network"}};
  c.services = {"dtr"};
  EXPECT_EQ(codes(), Codes{});
  c.services = {"contiv_network", "dtr"};
  EXPECT_EQ(codes(), Codes{"forbidden_together"});
  c.forbids.clear();
  c.needs = {{"dtr", "ucp"}};
  EXPECT_EQ(codes(), Codes{"missing_service"});
  fleet_["m1"].status.services["ucp"].healthy = false;
  EXPECT_EQ(codes(), Codes{"missing_service"});
  fleet_["m1"].status.services["ucp"].healthy = true;
  EXPECT_EQ(codes(), Codes{});
  fleet_["m1"].status.services.erase("ucp");
  candidate("n2").services = {"ucp"};
  EXPECT_EQ(codes(), Codes{}) << "comes in the same request";
}

TEST_F(PlacementTest, Versions) {
  Candidate& c = candidate("n1");
  c.version_variables = {{"docker", "docker_version"}};
  c.vars = {{"docker_version", "20.10"}};
  EXPECT_EQ(codes(), Codes{});
  c.vars = {{"docker_version", 20.1}};
  EXPECT_EQ(codes(), Codes{"number_as_version"});
  c.vars = Json::object();
  c.unknown_services = {"dokcer"};
  EXPECT_EQ(codes(), Codes{"unknown_service"});
}

TEST_F(PlacementTest, ManagerCounts) {
  input_.managers.clear();
  input_.peer = nullptr;
  const Json vars{{"service_vip", "10.0.0.100"}};
  for (int n = 1; n <= 9; ++n) {
    const std::string name = "k" + std::to_string(n);
    fleet_.add(name);
    candidate(name, Role::kManager).vars = vars;
    Codes want;
    if (n % 2 == 0) want.push_back("warning even_managers");
    if (n > 7) want.push_back("warning many_managers");
    EXPECT_EQ(codes(), want) << n;
  }
  const auto warnings = check_placement(input_).warnings;
  EXPECT_NE(warnings[0].message.find("tolerate the loss of 4"), std::string::npos)
      << warnings[0].message;
}

TEST(PlacementRules, EveryCodeHasARowInTheDocs) {
  std::ifstream in(SOURCE_DIR "/docs/placement.md");
  std::stringstream text;
  text << in.rdbuf();
  std::set<std::string_view> seen;
  for (const Rule& rule : placement_rules()) {
    for (std::string_view code : rule.codes) {
      EXPECT_TRUE(seen.insert(code).second) << code << " belongs to two rules";
      EXPECT_NE(text.str().find("| `" + std::string(code) + "` |"), std::string::npos) << code;
    }
  }
}

}  // namespace
}  // namespace clusterctl::fleet
