// Plans that are applied: one commit, no secret left behind, revisions kept within their bounds.
#include <gmock/gmock.h>

#include "controller/fixture.h"
#include "controller/stored_plan.h"

namespace clusterctl::controller {
namespace {

class ApplyTest : public ControllerTest {
 protected:
  static Json document(int nodes, const Json& vars = Json::object()) {
    Json list = Json::array();
    for (int i = 0; i < nodes; ++i) {
      list.push_back(
          {{"name", "n" + std::to_string(i)},
           {"spec",
            {{"addr", "10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200 + 1)},
             {"vars", vars}}}});
    }
    return {{"document", {{"nodes", std::move(list)}}}, {"work", false}};
  }
  std::string planned(const Json& body) {
    const auto plan = c().create_plan(body, "ann");
    EXPECT_TRUE(plan) << plan.error().line();
    return plan ? plan->value("id", "") : "";
  }
  std::set<std::string> keys(std::string_view prefix) {
    std::set<std::string> out;
    const auto records = store_->load(prefix);
    for (const store::Record& r : *records) out.insert(r.key);
    return out;
  }
};

TEST_F(ApplyTest, SecretsOfAPlanWaitAndMoveAndNothingOfThemStays) {
  const std::string id = planned(document(2, {{"x_password", "s3cr3t"}}));
  EXPECT_EQ(keys("secrets/plan.").size(), 2U);
  const auto plans = store_->load("plans/");
  ASSERT_FALSE(plans->empty());
  for (const store::Record& r : *plans) EXPECT_EQ(r.value.find("s3cr3t"), std::string::npos);
  restart();
  ASSERT_TRUE(c().apply_plan(id, "ann"));
  EXPECT_TRUE(keys("secrets/plan.").empty());
  EXPECT_EQ(keys("secrets/node.").size(), 2U);
  EXPECT_EQ(c().create_plan(document(2, {{"x_password", "s3cr3t"}}), "ann")->at("nothing"), true);
  const std::string again = planned(document(2, {{"x_password", "another"}}));
  ASSERT_TRUE(c().apply_plan(again, "ann"));
  EXPECT_EQ(c().resolve(node("n0").spec.vars)->vars["x_password"], "another");
}

TEST_F(ApplyTest, OldPlansGoWithTheirSecrets) {
  (void)planned(document(1, {{"x_password", "s3cr3t"}}));
  clock_.advance(kPlanKept);
  for (size_t i = 0; i < kKeptPlans + 5; ++i) (void)planned(document(1, {{"i", i}}));
  EXPECT_LE(c().state()->plans.size(), kKeptPlans);
  EXPECT_TRUE(keys("secrets/plan.").empty());
}

TEST_F(ApplyTest, ThousandNodesAreOneCommitAndOneRevision) {
  const std::string id = planned(document(1000));
  restart();
  ASSERT_TRUE(c().apply_plan(id, "ann"));
  EXPECT_EQ(c().fleet()->nodes.size(), 1000U);
  ASSERT_EQ(c().state()->revisions.size(), 1U);
  EXPECT_EQ(c().state()->revisions.at(1)->added.size(), 1000U);
  EXPECT_EQ(c().state()->revisions.at(1)->by, "ann");
  restart();
  EXPECT_EQ(c().state()->revisions.at(1)->added.size(), 1000U);
  EXPECT_TRUE(c().apply_plan(id, "ann")->repeated);
}

TEST_F(ApplyTest, RevisionsAreBounded) {
  add("n1", "10.0.0.1", "");
  for (size_t i = 0; i < kKeptRevisions + 20; ++i)
    ASSERT_TRUE(c().patch_node("n1", {{"spec", {{"labels", {{"i", std::to_string(i)}}}}}},
                               std::nullopt, {"ann"}));
  EXPECT_EQ(c().state()->revisions.size(), kKeptRevisions);
  EXPECT_EQ(keys(kRevisionPrefix).size(), 2 * kKeptRevisions);
  const auto newest = c().state()->revisions.rbegin()->first;
  const auto plan = c().create_plan({{"to_revision", newest - 50}, {"work", false}}, "ann");
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ((*plan)["nodes"][0]["fields"][0]["to"], std::to_string(kKeptRevisions + 20 - 51));
  EXPECT_EQ(c().create_plan({{"to_revision", 3}}, "ann").error().reason, "no_such_revision");
}

TEST_F(ApplyTest, WhatChangesNoWishIsNoRevision) {
  add_four();
  const auto before = c().state()->revisions.size();
  EXPECT_EQ(run(kCommissionAll).state, job::State::kSucceeded);
  EXPECT_EQ(run({{"kind", "verify"}}).state, job::State::kSucceeded);
  EXPECT_EQ(c().state()->revisions.size(), before) << "groups were wanted before";
}

}  // namespace
}  // namespace clusterctl::controller
