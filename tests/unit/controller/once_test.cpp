// A request that is sent twice with one Idempotency-Key is done once.
#include "controller/once.h"

#include <gmock/gmock.h>

#include "controller/fixture.h"

namespace clusterctl::controller {
namespace {

using std::chrono::hours;
using testing::HasSubstr;

const Json kNode{{"name", "n1"}, {"spec", {{"addr", "10.0.0.1"}}}};

class OnceTest : public ControllerTest {
 protected:
  Result<fleet::Node> add_once(const Json& body, const std::string& key, bool repeated) {
    Once once{key};
    auto node = c().add_node(body, {}, &once);
    EXPECT_EQ(once.repeated, repeated) << key;
    return node;
  }
};

TEST_F(OnceTest, ANodeIsAddedOnceAlsoOverARestart) {
  const auto first = add_once(kNode, "a", false);
  ASSERT_TRUE(first) << first.error().line();
  EXPECT_EQ(add_once(kNode, "a", true)->id, first->id);
  restart();
  EXPECT_EQ(add_once(kNode, "a", true)->id, first->id);
  ASSERT_TRUE(c().patch_node("n1", {{"spec", {{"labels", {{"rack", "r1"}}}}}}, std::nullopt));
  EXPECT_EQ(add_once(kNode, "a", true)->spec.labels.at("rack"), "r1") << "as it is now";
  EXPECT_EQ(add_once(kNode, "", false).error().reason, "name_taken") << "no key, no memory";
}

TEST_F(OnceTest, AnotherRequestWithTheKeyIsRefused) {
  ASSERT_TRUE(add_once(kNode, "a", false));
  const auto other = add_once({{"name", "n2"}, {"spec", {{"addr", "10.0.0.2"}}}}, "a", false);
  EXPECT_EQ(other.error().code, Code::kConflict);
  EXPECT_EQ(other.error().reason, "idempotency_key");
  const auto job = c().create_job({{"kind", "check"}, {"nodes", {"n1"}}}, "test", "a");
  EXPECT_EQ(job.error().reason, "idempotency_key") << "also by another route";
  EXPECT_FALSE(c().fleet()->by_name("n2"));
}

TEST_F(OnceTest, WhatWasMadeAndIsGoneIsNotMadeAgain) {
  const auto node = add_once(kNode, "a", false);
  ASSERT_TRUE(node);
  ASSERT_TRUE(c().remove_node("n1", std::nullopt));
  const auto again = add_once(kNode, "a", false);
  EXPECT_EQ(again.error().reason, "idempotency_gone");
  EXPECT_THAT(again.error().message, HasSubstr(node->id));
}

TEST_F(OnceTest, ARefusedRequestIsNotRemembered) {
  ASSERT_TRUE(add_once(kNode, "", false));
  EXPECT_EQ(add_once(kNode, "a", false).error().reason, "name_taken");
  ASSERT_TRUE(c().remove_node("n1", std::nullopt));
  EXPECT_TRUE(add_once(kNode, "a", false));
}

TEST_F(OnceTest, AKeyIsForgottenAfterADay) {
  ASSERT_TRUE(add_once(kNode, "a", false));
  clock_.advance(hours(24) - std::chrono::milliseconds(1));
  EXPECT_TRUE(add_once(kNode, "a", true));
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(add_once(kNode, "a", false).error().reason, "name_taken");
}

TEST_F(OnceTest, AJobAndItsRetryAreMadeOnce) {
  add_four();
  const Json body{{"kind", "check"}, {"nodes", {"m1"}}, {"vars", {{"a", 1}, {"b", 2}}}};
  auto made = c().create_job(body, "test", "job");
  ASSERT_TRUE(made) << made.error().line();
  auto again = c().create_job(
      parse_json(R"({"vars":{"b":2,"a":1},"nodes":["m1"],"kind":"check"})", "it").value(), "test",
      "job");
  ASSERT_TRUE(again && again->repeated);
  EXPECT_EQ(again->job->id, made->job->id);
  wait(made->job->id);
  runs_.scripts["site"].failing["m1"] = "docker: no space";
  const job::Job failed = run({{"kind", "commission"}, {"nodes", {"m1"}}});
  ASSERT_EQ(failed.state, job::State::kFailed);
  runs_.scripts["site"] = {};
  job::Selection what;
  what.failed = true;
  const auto first = c().continue_job("last", what, false, "test", "retry");
  ASSERT_TRUE(first) << first.error().line();
  const auto second = c().continue_job("last", what, false, "test", "retry");
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_TRUE(second->repeated);
  EXPECT_EQ(second->job->id, first->job->id);
  wait(first->job->id);
}

TEST_F(OnceTest, APlanIsMadeOnceAndAppliedOnce) {
  const Json body{{"changes", {{"nodes", {{{"name", "n1"}, {"spec", {{"addr", "10.0.0.1"}}}}}}}}};
  Once once{"plan"}, twice{"plan"}, later{"plan"};
  const auto plan = c().create_plan(body, "test", &once);
  ASSERT_TRUE(plan) << plan.error().line();
  const auto again = c().create_plan(body, "test", &twice);
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_TRUE(!once.repeated && twice.repeated);
  EXPECT_EQ(*again, *plan);
  const std::string id = plan->at("id");
  ASSERT_TRUE(c().apply_plan(id, "test", "apply"));
  restart();
  const auto applied = c().apply_plan(id, "test", "apply");
  ASSERT_TRUE(applied) << applied.error().line();
  EXPECT_TRUE(applied->repeated);
  EXPECT_EQ(c().create_plan(body, "test", &later).error().reason, "plan_applied");
  EXPECT_EQ(c().apply_plan(id + "0", "test", "apply").error().reason, "idempotency_key");
}

TEST_F(OnceTest, AStalePlanIsNotGivenAgain) {
  add("n1", "10.0.0.1", "");
  const Json body{
      {"changes", {{"nodes", {{{"name", "n1"}, {"spec", {{"labels", {{"a", "b"}}}}}}}}}}};
  Once once{"plan"};
  ASSERT_TRUE(c().create_plan(body, "test", &once));
  ASSERT_TRUE(c().patch_node("n1", {{"spec", {{"labels", {{"x", "y"}}}}}}, std::nullopt));
  EXPECT_EQ(c().create_plan(body, "test", &once).error().reason, "plan_stale");
}

// What a key costs is bounded, whatever clients do.
TEST(KeyTable, HoldsOnlySoMany) {
  KeyTable table;
  Time now{hours(24 * 365 * 50)};
  for (size_t i = 0; i < KeyTable::kMax + 50; ++i) {
    KeyChanges changes;
    table.remember("key " + std::to_string(i), {"digest", std::to_string(i), now}, changes);
    EXPECT_LE(changes.size(), 2u);
    table.apply(changes);
    now += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(table.size(), KeyTable::kMax);
  EXPECT_FALSE(table.find("key 49", "digest", now).value());
  EXPECT_EQ(table.find("key 50", "digest", now).value(), "50");
  now += hours(24);
  KeyChanges changes;
  table.remember("new", {"digest", "new", now}, changes);
  EXPECT_EQ(changes.size(), 11u) << "the old ones go bit by bit";
  table.apply(changes);
  EXPECT_EQ(table.size(), KeyTable::kMax - 9);
}

}  // namespace
}  // namespace clusterctl::controller
