#include "fleet/operation.h"

#include <gtest/gtest.h>

#include "fakes/fleet_builder.h"
#include "fleet/selector.h"

namespace clusterctl::fleet {
namespace {

NewNode request(const std::string& name, const std::string& addr) {
  NewNode out;
  out.name = name;
  out.spec.addr = addr;
  return out;
}

TEST(Operation, AddedNodesAreUnique) {
  FleetBuilder fleet;
  fleet.add("n1").spec.addr = "fd00::1";
  EXPECT_EQ(add_node(fleet.snapshot(), request("n1", "10.0.0.9"), "id", at(1)).error().reason,
            "name_taken");
  EXPECT_EQ(add_node(fleet.snapshot(), request("n2", "FD00:0::1"), "id", at(1)).error().reason,
            "addr_taken");
  const auto node = add_node(fleet.snapshot(), request("n2", "10.0.0.9"), "id", at(1));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->generation, 1u);
  EXPECT_EQ(node->resource_version, 1u);
  EXPECT_EQ(node->spec.acceptance, Acceptance::kAccepted);
}

TEST(Operation, AcceptanceFollowsThePolicyUnlessGiven) {
  FleetBuilder fleet;
  fleet.snapshot().cluster.accept_policy = "manual";
  NewNode r = request("n1", "10.0.0.9");
  EXPECT_EQ(add_node(fleet.snapshot(), r, "id", at(1))->spec.acceptance, Acceptance::kPending);
  r.acceptance_given = true;
  EXPECT_EQ(add_node(fleet.snapshot(), r, "id", at(1))->spec.acceptance, Acceptance::kAccepted);
}

TEST(Operation, OnlyUncommissionedNodesCanBeRemoved) {
  for (const auto& [l, name] : Words<Lifecycle>::kTable) {
    Node n = make_node("n1", 1);
    n.status.lifecycle = l;
    EXPECT_EQ(check_removable(n).has_value(),
              l == Lifecycle::kUnallocated || l == Lifecycle::kDecommissioned)
        << name;
  }
}

TEST(Operation, VersionsGrowWithWhatTheyCount) {
  struct Row {
    const char* what;
    uint64_t generation, resource_version;
    std::function<bool(Node&)> change;
  };
  const std::vector<Row> rows{
      {"spec", 1, 1,
       [](Node& n) {
         NodeSpec s = n.spec;
         s.labels["a"] = "b";
         return set_spec(n, s);
       }},
      {"lifecycle", 0, 1, [](Node& n) { return apply_event(n, Event::kCommission).has_value(); }},
      {"applied", 0, 1,
       [](Node& n) {
         return set_applied(n, Applied{"g", {}, Availability::kActive, {}, {"base"}, "", {}, {}});
       }},
      {"service", 0, 1, [](Node& n) { return record_service(n, "etcd", ServiceStatus{}); }},
      {"condition", 0, 1,
       [](Node& n) { return set_condition(n, condition::kDirty, "r", "j", at(1)); }},
      {"fence", 0, 1, [](Node& n) { return add_fence(n, "run1"); }},
      {"presence", 0, 0, [](Node& n) { return set_presence(n, Presence::kDiscovered, at(1)); }},
      {"hardware", 0, 0, [](Node& n) { return record_hardware(n, Hardware{}); }},
  };
  for (const Row& row : rows) {
    Node n = make_node("n1", 1);
    EXPECT_TRUE(row.change(n)) << row.what;
    EXPECT_EQ(n.generation, 1 + row.generation) << row.what;
    EXPECT_EQ(n.resource_version, 1 + row.resource_version) << row.what;
    const Node once = n;
    row.change(n);
    EXPECT_EQ(n, once) << row.what << ": the same again changes nothing";
  }
}

TEST(Operation, FencesAreKeptUntilTheyAreDone) {
  Node n = make_node("n1", 1);
  for (const char* run : {"r2", "r1", "r3"}) add_fence(n, run);
  EXPECT_EQ(n.status.fence_runs, (std::vector<std::string>{"r1", "r2", "r3"}));
  EXPECT_FALSE(clear_fences(n, {"r9"}));
  EXPECT_TRUE(clear_fences(n, {"r1", "r3"}));
  EXPECT_EQ(n.status.fence_runs, std::vector<std::string>{"r2"});
  for (int i = 100; i < 200; ++i) add_fence(n, "r" + std::to_string(i));
  EXPECT_EQ(n.status.fence_runs.size(), 16U);
  EXPECT_EQ(n.status.fence_runs.back(), "r2") << "sorted as texts: ids of runs sort by time";
}

TEST(Operation, ANewObservationOfTheSameIsNoChange) {
  Node n = make_node("n1", 1);
  ServiceStatus s;
  s.healthy = true;
  s.member_id = "m1";
  s.observed = at(1);
  EXPECT_TRUE(record_service(n, "etcd", s));
  s.observed = at(2);
  EXPECT_FALSE(record_service(n, "etcd", s));
  EXPECT_EQ(n.status.services["etcd"].observed, at(2));
  ServiceStatus sick;
  sick.observed = at(3);
  EXPECT_TRUE(record_service(n, "etcd", sick));
  EXPECT_EQ(n.status.services["etcd"].member_id, "m1") << "the id is needed to remove the member";
  EXPECT_TRUE(clear_applied(n));
  EXPECT_TRUE(n.status.services.empty());
  EXPECT_FALSE(clear_applied(n));
}

TEST(Operation, VerifiedMeansNothingIsOwed) {
  Node n = make_node("n1", 1);
  for (std::string_view type : condition_types()) set_condition(n, type, "r", "j", at(1));
  set_applied(n, Applied{});
  std::vector<std::string> left;
  for (const Condition& c : n.status.conditions) left.push_back(c.type);
  EXPECT_EQ(left, (std::vector<std::string>{"HardwareReplaced", "IdentityConflict",
                                            "LeaveRequested", "MaintenanceOverdue", "Pending"}));
}

TEST(Operation, PatchRefusesWhatNeedsAJobAndWhatIsTaken) {
  FleetBuilder fleet;
  fleet.manager("n1");
  fleet.add("n2");
  const Json body{{"spec", {{"vars", {{"x", 1}}}}}};
  Node n1 = fleet["n1"], n2 = fleet["n2"];
  EXPECT_TRUE(*patch_node(fleet.snapshot(), n1, body, at(2)));
  EXPECT_TRUE(*patch_node(fleet.snapshot(), n2, body, at(2)));
  EXPECT_FALSE(*patch_node(fleet.snapshot(), n2, body, at(2)));
  for (const Json& spec : {Json{{"host_group", "service-worker"}}, Json{{"allocation", "spare"}},
                           Json{{"acceptance", "rejected"}}}) {
    const auto refused = patch_node(fleet.snapshot(), n1, {{"spec", spec}}, at(2));
    ASSERT_FALSE(refused) << spec;
    EXPECT_EQ(refused.error().reason, "needs_job");
    EXPECT_TRUE(patch_node(fleet.snapshot(), n2, {{"spec", spec}}, at(2))) << "not commissioned";
  }
  EXPECT_EQ(
      patch_node(fleet.snapshot(), n1, {{"spec", {{"addr", n2.spec.addr}}}}, at(2)).error().reason,
      "addr_taken");
}

// presence before, after, lifecycle, applied: does it need a verification?
TEST(Operation, WhoComesBackInServiceNeedsAVerification) {
  FleetBuilder fleet;
  using enum Lifecycle;
  for (const Lifecycle lifecycle :
       {kUnallocated, kProvisioning, kAllocated, kMaintenance, kCancelled, kDecommissioned}) {
    for (const Presence before :
         {Presence::kUnknown, Presence::kDiscovered, Presence::kDisappeared}) {
      for (const Presence after : {Presence::kDiscovered, Presence::kDisappeared}) {
        Node n = fleet.manager("n1");
        n.status.lifecycle = lifecycle;
        n.status.presence = before;
        const uint64_t version = n.resource_version;
        set_presence(n, after, at(5));
        const bool serves = lifecycle == kAllocated || lifecycle == kMaintenance;
        const bool wanted =
            serves && before == Presence::kDisappeared && after == Presence::kDiscovered;
        EXPECT_EQ(has_condition(n.status, condition::kNeedsVerification), wanted)
            << word(lifecycle) << " " << word(before) << " " << word(after);
        EXPECT_EQ(n.resource_version != version, wanted);
      }
    }
  }
}

TEST(Operation, AnEarlierReasonToVerifyStays) {
  FleetBuilder fleet;
  Node n = fleet.worker("n1");
  set_condition(n, condition::kNeedsVerification, "docker is sick", "job1", at(1));
  set_presence(n, Presence::kDisappeared, at(2));
  set_presence(n, Presence::kDiscovered, at(3));
  EXPECT_EQ(find_condition(n.status, condition::kNeedsVerification)->reason, "docker is sick");
}

TEST(Selector, MatchesAllTerms) {
  const std::map<std::string, std::string> labels{{"rack", "r1"}, {"tier", "gold"}, {"empty", ""}};
  const std::vector<std::pair<const char*, bool>> rows{{"", true},
                                                       {"  ", true},
                                                       {"rack=r1", true},
                                                       {"rack==r1", true},
                                                       {"rack=r2", false},
                                                       {"rack!=r2", true},
                                                       {"rack!=r1", false},
                                                       {"rack", true},
                                                       {"row", false},
                                                       {"!row", true},
                                                       {"!rack", false},
                                                       {"row!=x", true},
                                                       {"rack=r1, tier=gold", true},
                                                       {"rack=r1,tier=silver", false},
                                                       {"empty=", true},
                                                       {"rack=", false}};
  for (const auto& [text, want] : rows) {
    const auto selector = Selector::parse(text);
    ASSERT_TRUE(selector) << text;
    EXPECT_EQ(selector->matches(labels), want) << text;
  }
  for (const std::string& bad :
       std::vector<std::string>{",", "a,", "=x", "!=x", "!", "a b", "a=b\nc", "{{x}}",
                                std::string(5000, 'a'), "a=\xff", "!!a"}) {
    EXPECT_FALSE(Selector::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace clusterctl::fleet
