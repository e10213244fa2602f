// What separates a document from the fleet, and which work follows.
#include <gmock/gmock.h>

#include "fleet/node_json.h"
#include "plan/plan_fixture.h"
#include "plan/wanted.h"

namespace clusterctl::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using What = NodeDifference::What;

class DifferenceTest : public PlanTest {
 protected:
  Surroundings around() {
    Surroundings out{fleet_.snapshot(), catalog_, busy_, {}, {}};
    for (const char* name : {"n1", "n2", "w9"}) out.new_id[name] = std::string("id") + name;
    return out;
  }
  Difference difference_of(const Wanted& wanted) {
    auto d = difference(around(), wanted);
    EXPECT_TRUE(d) << d.error().line();
    return d.value_or(Difference{});
  }
  std::string reason_of(const Wanted& wanted) {
    const auto d = difference(around(), wanted);
    return d ? "accepted" : d.error().reason;
  }
  static Wanted document(std::vector<WantedNode> nodes) {
    Wanted w;
    w.nodes = std::move(nodes);
    return w;
  }
  // A manager in service with what is wanted, verified.
  fleet::Node& manager() {
    fleet::Node& node = fleet_.manager("m1");
    fleet_.report();
    node.status.applied->vars_fingerprint =
        vars_fingerprint(fleet_.snapshot(), catalog_, node, node.spec.host_group);
    return node;
  }
  static std::vector<std::string> fields(const NodeDifference& d) {
    std::vector<std::string> out;
    for (const FieldChange& c : d.fields) out.push_back(c.field);
    return out;
  }

  std::map<std::string, Busy> busy_;
};

TEST_F(DifferenceTest, WhatIsThereAlreadyIsNothingToDo) {
  const fleet::Node node = manager();
  const Difference d = difference_of(
      document({{"m1", {{"addr", node.spec.addr}, {"host_group", "service-master"}}, {}}}));
  EXPECT_TRUE(d.nothing());
  EXPECT_EQ(d.unchanged, 1U);
  EXPECT_EQ(d.after.nodes, fleet_.snapshot().nodes);
}

TEST_F(DifferenceTest, WhatNoJobMayTouchNowIsLeftOutAndNoChange) {
  manager();
  fleet::Node& w1 = fleet_.worker("w1");
  w1.status.applied->vars_fingerprint =
      vars_fingerprint(fleet_.snapshot(), catalog_, w1, w1.spec.host_group);
  w1.status.lifecycle = fleet::Lifecycle::kMaintenance;
  w1.status.maintenance = fleet::Maintenance{};
  for (const Json& spec :
       {Json{{"host_group", "service-master"}}, Json{{"availability", "pause"}}}) {
    const Difference d = difference_of(document({{"w1", spec, {}}}));
    EXPECT_TRUE(d.nothing()) << spec;
    EXPECT_THAT(d.left_out, ElementsAre("w1")) << spec;
    EXPECT_EQ(d.unchanged, 0U) << spec;
    EXPECT_THAT(d.affected, IsEmpty()) << spec;
    ASSERT_EQ(d.warnings.size(), 1U);
    EXPECT_EQ(d.warnings[0].code, "left_out");
  }
  // What is only a record changes all the same.
  const Difference d = difference_of(
      document({{"w1", {{"availability", "pause"}, {"labels", {{"rack", "r1"}}}}, {}}}));
  ASSERT_EQ(d.nodes.size(), 1U);
  EXPECT_THAT(fields(d.nodes[0]), ElementsAre("labels.rack"));
  EXPECT_THAT(d.left_out, ElementsAre("w1"));
  busy_[w1.id] = {"job", "update"};
  EXPECT_TRUE(difference_of(document({{"w1", {{"availability", "pause"}}, {}}})).nothing());
}

TEST_F(DifferenceTest, VariablesAreExactAndOtherFieldsStayUnlessNamed) {
  fleet::Node& node = fleet_.add("n3", "service-worker");
  node.spec.vars = {{"a", 1}, {"b", 2}};
  node.spec.labels = {{"rack", "r1"}};
  node.spec.availability = fleet::Availability::kDrain;
  Wanted w = document({{"n3", {{"vars", {{"b", 3}}}}, {}}});
  w.work = false;
  const Difference d = difference_of(w);
  ASSERT_EQ(d.nodes.size(), 1U);
  EXPECT_THAT(fields(d.nodes[0]), ElementsAre("vars.a", "vars.b"));
  const fleet::NodeSpec& after = d.after.nodes.at(node.id).spec;
  EXPECT_EQ(after.vars, Json({{"b", 3}}));
  EXPECT_EQ(after.labels.at("rack"), "r1");
  EXPECT_EQ(after.availability, fleet::Availability::kDrain);
}

TEST_F(DifferenceTest, ChangesAreAPatch) {
  fleet::Node& node = fleet_.add("n3", "service-worker");
  node.spec.vars = {{"a", 1}, {"b", 2}};
  Wanted w = document({{"n3", {{"vars", {{"b", nullptr}}}}, {}}});
  w.reading = Reading::kChanges;
  w.work = false;
  EXPECT_EQ(difference_of(w).after.nodes.at(node.id).spec.vars, Json({{"a", 1}}));
  EXPECT_THAT(difference_of(w).missing, IsEmpty());
}

TEST_F(DifferenceTest, AWholeSpecKeepsTheKeyThatWasLearntSince) {
  fleet::Node& node = fleet_.add("n3", "service-worker");
  const Json then = fleet::to_json(node.spec);
  node.spec.ssh.host_key = "ssh-ed25519 AAAA";
  Wanted w = document({{"n3", then, {}}});
  w.reading = Reading::kWhole;
  w.work = false;
  EXPECT_TRUE(difference_of(w).nodes.empty());
}

TEST_F(DifferenceTest, NewNodesAreCommissionedInOneStep) {
  const Difference d = difference_of(
      document({{"n2", {{"addr", "10.9.0.2"}, {"host_group", "service-worker"}}, {}},
                {"n1", {{"addr", "10.9.0.1"}, {"host_group", "service-master"}}, {}}}));
  ASSERT_EQ(d.nodes.size(), 2U);
  EXPECT_EQ(d.nodes[0].what, What::kAdd);
  ASSERT_EQ(d.steps.size(), 1U);
  EXPECT_EQ(d.steps[0].plan.kind, "commission");
  EXPECT_THAT(d.steps[0].plan.targets, ElementsAre("idn1", "idn2")) << "managers first";
}

TEST_F(DifferenceTest, SparesAndThoseThatWaitAreNotCommissioned) {
  const Difference d = difference_of(document(
      {{"n1",
        {{"addr", "10.9.0.1"}, {"host_group", "service-master"}, {"allocation", "spare"}},
        {}},
       {"n2",
        {{"addr", "10.9.0.2"}, {"host_group", "service-master"}, {"acceptance", "pending"}},
        {}}}));
  EXPECT_EQ(d.nodes.size(), 2U);
  EXPECT_TRUE(d.steps.empty());
}

TEST_F(DifferenceTest, ANewGlobalUpdatesWhoeverIsInService) {
  manager();
  Wanted w = document({{"m1", Json::object(), {}}});
  w.globals = Json{{"service_vip", "10.0.0.200"}, {"ntp", "a"}};
  w.options = {{"allow_outage", true}};
  const Difference d = difference_of(w);
  ASSERT_EQ(d.steps.size(), 1U);
  EXPECT_EQ(d.steps[0].plan.kind, "update");
  EXPECT_TRUE(d.steps[0].request.allow_outage);
  EXPECT_THAT(d.affected, ElementsAre("m1"));
}

TEST_F(DifferenceTest, MissingNodesGoOnlyWithPrune) {
  fleet_.add("n3", "service-worker");
  fleet::Node& pending = fleet_.add("n4", "");
  pending.spec.acceptance = fleet::Acceptance::kPending;
  EXPECT_THAT(difference_of(document({})).missing, ElementsAre("n3"));
  Wanted w = document({});
  w.prune = true;
  const Difference d = difference_of(w);
  ASSERT_EQ(d.nodes.size(), 1U) << "who waits for acceptance is never pruned";
  EXPECT_EQ(d.nodes[0].what, What::kRemove);
  EXPECT_EQ(d.after.nodes.size(), 1U);
}

TEST_F(DifferenceTest, NodesMayExchangeTheirAddresses) {
  const std::string a = fleet_.add("n3", "service-worker").spec.addr;
  const std::string b = fleet_.add("n4", "service-worker").spec.addr;
  Wanted w = document({{"n3", {{"addr", b}}, {}}, {"n4", {{"addr", a}}, {}}});
  w.work = false;
  EXPECT_EQ(difference_of(w).nodes.size(), 2U);
  w.nodes[1].spec["addr"] = b;
  EXPECT_EQ(reason_of(w), "addr_taken");
}

TEST_F(DifferenceTest, WhomAJobHoldsIsNotChanged) {
  fleet::Node& node = fleet_.add("n3", "service-worker");
  busy_[node.id] = {"01J", "commission"};
  EXPECT_EQ(reason_of(document({{"n3", {{"labels", {{"a", "b"}}}}, {}}})), "busy");
  const Difference d = difference_of(document({{"n3", Json::object(), {}}}));
  EXPECT_TRUE(d.nothing());
  ASSERT_EQ(d.warnings.size(), 1U);
  EXPECT_EQ(d.warnings[0].code, "busy");
}

TEST_F(DifferenceTest, AllProblemsOfAllNodesAreTold) {
  const auto d =
      difference(around(), document({{"n1", {{"addr", "a b"}}, {}},
                                     {"n2", {{"addr", "10.0.0.9"}, {"host_group", "x"}}, {}},
                                     {"w9", {{"addr", "10.0.0.8"}, {"color", 1}}, {}}}));
  ASSERT_FALSE(d);
  std::set<std::string> nodes;
  for (const Problem& p : d.error().problems) nodes.insert(p.node);
  EXPECT_THAT(nodes, ElementsAre("n1", "n2", "w9"));
}

TEST_F(DifferenceTest, ANewSecretBehindTheSameReferenceIsAChange) {
  fleet::Node& node = fleet_.add("n3", "service-worker");
  node.spec.vars = {{"p", {{"secret", "node.x.p"}}}};
  Wanted w = document({{"n3", {{"vars", node.spec.vars}}, {"p"}}});
  w.work = false;
  const Difference d = difference_of(w);
  ASSERT_EQ(d.nodes.size(), 1U);
  EXPECT_TRUE(d.nodes[0].fields[0].secret_value);
  EXPECT_EQ(d.after.nodes.at(node.id).generation, node.generation + 1);
}

}  // namespace
}  // namespace clusterctl::plan
