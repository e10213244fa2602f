// What follows from a change by itself: Pending, Drifted, the history; and what the drift policy
// makes of it.
#include <gmock/gmock.h>

#include <set>

#include "controller/fixture.h"
#include "controller/history.h"
#include "controller/node_change.h"
#include "job/evaluate.h"

namespace clusterctl::controller {
namespace {

using testing::Contains;
using testing::HasSubstr;

class DomainTest : public ControllerTest {
 protected:
  std::string reason(const std::string& name, std::string_view condition) {
    const auto n = node(name);
    const auto* c = fleet::find_condition(n.status, condition);
    return c ? c->reason : "";
  }
  std::vector<std::string> history(const std::string& name) {
    std::vector<std::string> out;
    const auto now = c().state();
    const auto it = now->history.find(node(name).id);
    if (it == now->history.end()) return out;
    for (const HistoryEntry& e : *it->second) out.push_back(e.by + ": " + e.message);
    return out;
  }
  void policy(const std::string& word) { ASSERT_TRUE(c().patch_cluster({{"drift_policy", word}})); }
  std::vector<job::Job> automatic() {
    std::vector<job::Job> out;
    const auto now = c().state();
    for (const auto& [id, job] : now->jobs) {
      if (job->initiator == "drift-policy") out.push_back(*job);
    }
    return out;
  }
  // Until nothing is left to do.
  job::Job wait_automatic(size_t number) {
    for (;;) {
      const auto jobs = automatic();
      if (jobs.size() >= number && job::is_final(jobs[number - 1].state)) return jobs[number - 1];
      std::this_thread::yield();
    }
  }
};

TEST_F(DomainTest, AWorkerIsPendingUntilThereIsAManager) {
  ASSERT_TRUE(c().set_globals({{"service_vip", "10.0.0.100"}}, true));
  add("w1", "10.0.0.11", "service-worker");
  EXPECT_THAT(reason("w1", "Pending"), HasSubstr("without a manager"));
  add("m1", "10.0.0.1", "service-master");
  EXPECT_TRUE(has("w1", "Pending")) << "m1 is not commissioned yet";
  EXPECT_FALSE(has("m1", "Pending"));
  for (const std::string service : {"etcd", "swarm"}) set_members(service, {"m1"});
  run({{"kind", "commission"}, {"nodes", {"m1"}}});
  EXPECT_FALSE(has("w1", "Pending"));
  runs_.scripts["observe"].unreachable = {"m1"};
  run({{"kind", "observe"}});
  EXPECT_TRUE(has("w1", "Pending"));
  runs_.scripts.erase("observe");
  run({{"kind", "observe"}});
  EXPECT_FALSE(has("w1", "Pending"));
  EXPECT_TRUE(has("m1", "NeedsVerification")) << "it was away";
  run({{"kind", "verify"}, {"nodes", {"m1"}}});
  EXPECT_FALSE(has("m1", "NeedsVerification"));
}

TEST_F(DomainTest, ANodeInAJobIsNotPending) {
  ASSERT_TRUE(c().set_globals({{"service_vip", "10.0.0.100"}}, true));
  add("m1", "10.0.0.1", "service-master");
  add("w1", "10.0.0.11", "service-worker");
  ASSERT_TRUE(has("w1", "Pending"));
  runs_.hold = true;
  const auto job = submit({{"kind", "commission"}, {"nodes", {"m1", "w1"}}});
  ASSERT_TRUE(job);
  EXPECT_FALSE(has("w1", "Pending"));
  ASSERT_TRUE(c().cancel_job(job->id, true));
  wait(job->id);
  EXPECT_TRUE(has("w1", "Pending"));
}

TEST_F(DomainTest, DriftedComesAndGoesWithTheVariables) {
  add_four();
  run(kCommissionAll);
  for (const char* name : {"m1", "m2", "m3", "w1"}) EXPECT_FALSE(has(name, "Drifted")) << name;
  ASSERT_TRUE(c().set_globals({{"etcd_quota_bytes", 5}}, true));
  EXPECT_EQ(reason("m1", "Drifted"), "differs from what was applied: variable etcd_quota_bytes");
  EXPECT_FALSE(has("w1", "Drifted")) << "it carries no etcd";
  ASSERT_TRUE(c().set_globals({{"etcd_quota_bytes", nullptr}}, true));
  EXPECT_FALSE(has("m1", "Drifted"));
  ASSERT_TRUE(c().patch_node("w1", {{"spec", {{"vars", {{"x", 1}}}}}}, std::nullopt));
  EXPECT_TRUE(has("w1", "Drifted"));
  EXPECT_FALSE(has("m1", "Drifted"));
  EXPECT_EQ(run({{"kind", "update"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  EXPECT_FALSE(has("w1", "Drifted"));
  restart();
  EXPECT_FALSE(has("w1", "Drifted")) << "the digests are stored";
}

TEST_F(DomainTest, AChangedSecretIsADifferenceAndIsNeverShown) {
  ASSERT_TRUE(c().set_globals({{"registry_password", "one"}}, true));
  add_four();
  run(kCommissionAll);
  const uint64_t before = node("w1").resource_version;
  ASSERT_TRUE(c().set_globals({{"registry_password", "one"}}, true));
  EXPECT_EQ(node("w1").resource_version, before);
  ASSERT_TRUE(c().set_globals({{"registry_password", "two-secret"}}, true));
  EXPECT_EQ(reason("w1", "Drifted"), "differs from what was applied: variable registry_password");
  restart();
  EXPECT_TRUE(has("w1", "Drifted"));
  ASSERT_TRUE(c().set_globals({{"registry_password", "one"}}, true));
  EXPECT_FALSE(has("w1", "Drifted"));
}

TEST_F(DomainTest, WhatIsChangedWhileTheJobRunsIsNotApplied) {
  add_four();
  runs_.scripts["verify"].before = [this] { ASSERT_TRUE(c().set_globals({{"late", 1}}, true)); };
  run(kCommissionAll);
  runs_.scripts["verify"].before = nullptr;
  EXPECT_TRUE(has("w1", "Drifted")) << "it was converged without it";
  run({{"kind", "update"}});
  EXPECT_FALSE(has("w1", "Drifted"));
}

TEST_F(DomainTest, AChangedCatalogIsSeenAtTheStart) {
  add_four();
  run(kCommissionAll);
  auto text = read_file(SOURCE_DIR "/playbooks/catalog.yml", 1 << 20);
  ASSERT_TRUE(text);
  const size_t at = text->find("needs: [base]\n    version: etcd_version");
  ASSERT_NE(at, std::string::npos);
  text->replace(at, 13, "needs: [base, docker]");
  controller_->stop();
  controller_.reset();
  auto catalog = catalog::Catalog::parse_text(*text, "changed");
  ASSERT_TRUE(catalog) << catalog.error().line();
  *catalog_ = std::move(*catalog);
  start();
  EXPECT_THAT(reason("m1", "Drifted"), HasSubstr("service etcd has another entry"));
  EXPECT_FALSE(has("w1", "Drifted"));
}

TEST_F(DomainTest, TheHistoryTellsWhatWhoAndWhy) {
  ASSERT_TRUE(c().set_globals({{"service_vip", "10.0.0.100"}}, true, std::nullopt, {"uid:7"}));
  auto added = c().add_node(
      {{"name", "m1"}, {"spec", {{"addr", "10.0.0.1"}, {"host_group", "service-master"}}}},
      {"uid:7"});
  ASSERT_TRUE(added);
  ASSERT_TRUE(c().patch_node("m1", {{"spec", {{"labels", {{"a", "1"}}}}}}, std::nullopt,
                             {"uid:8", "moved"}));
  for (const std::string service : {"etcd", "swarm"}) set_members(service, {"m1"});
  run({{"kind", "commission"}, {"nodes", {"m1"}}});
  EXPECT_THAT(history("m1"),
              testing::ElementsAre("uid:7: 10.0.0.1", "uid:8: spec changed: labels",
                                   "test: Unallocated → Provisioning",
                                   "test: Provisioning → Allocated", "test: commission succeeded"));
  EXPECT_EQ(c().state()->history.at(added->id)->at(1).reason, "moved");
  runs_.scripts["verify"].unhealthy["m1"] = "docker";
  run({{"kind", "verify"}, {"nodes", {"m1"}}});
  EXPECT_THAT(history("m1"), Contains(HasSubstr("test: verify failed (docker): ")));
  EXPECT_THAT(history("m1"), Contains(HasSubstr("test: NeedsVerification: ")));
  const auto before = history("m1");
  restart();
  EXPECT_EQ(history("m1"), before);
}

TEST_F(DomainTest, TheHistoryIsBoundedByNumberAndAge) {
  add("n1", "10.0.0.1", "");
  const auto change = [&](int i) {
    ASSERT_TRUE(
        c().patch_node("n1", {{"spec", {{"labels", {{"i", std::to_string(i)}}}}}}, std::nullopt));
  };
  for (int i = 0; i < 250; ++i) change(i);
  EXPECT_EQ(history("n1").size(), kHistoryKept);
  const auto stored = [&] { return store_->load("history/")->size(); };
  EXPECT_EQ(stored(), kHistoryKept);
  clock_.advance(kHistoryAge + std::chrono::hours(1));
  change(1000);
  EXPECT_EQ(history("n1").size(), 1u);
  restart();
  EXPECT_EQ(history("n1").size(), 1u);
  ASSERT_TRUE(c().remove_node("n1", std::nullopt));
  EXPECT_EQ(stored(), 0u);
}

TEST_F(DomainTest, AutoUpdatesOnceForACause) {
  add_four();
  run(kCommissionAll);
  ASSERT_TRUE(c().set_globals({{"x", 1}}, true));
  EXPECT_TRUE(automatic().empty()) << "ask: nothing begins by itself";
  policy("auto");
  const auto job = wait_automatic(1);
  EXPECT_EQ(job.kind, "update");
  EXPECT_EQ(job.state, job::State::kSucceeded);
  EXPECT_EQ(job.nodes.size(), 4u);
  EXPECT_FALSE(has("w1", "Drifted"));
  // Only the node concerned.
  clock_.advance(std::chrono::seconds(1));
  ASSERT_TRUE(c().patch_node("w1", {{"spec", {{"vars", {{"y", 1}}}}}}, std::nullopt));
  EXPECT_EQ(wait_automatic(2).nodes.size(), 1u);
  EXPECT_EQ(automatic().size(), 2u);
}

TEST_F(DomainTest, AFailureIsLeftToPeople) {
  add_four();
  run(kCommissionAll);
  policy("auto");
  runs_.scripts["check"].problems["w1"] = "no space";
  ASSERT_TRUE(c().patch_node("w1", {{"spec", {{"vars", {{"y", 1}}}}}}, std::nullopt));
  EXPECT_EQ(wait_automatic(1).state, job::State::kFailed);
  // Whatever else happens, it is not begun again, not even by the next daemon.
  run({{"kind", "verify"}, {"nodes", {"w1"}}});
  restart();
  run({{"kind", "check"}, {"nodes", {"m1"}}});
  EXPECT_EQ(automatic().size(), 1u);
  EXPECT_TRUE(has("w1", "Drifted"));
}

TEST_F(DomainTest, NothingBeginsWhileIsolatedOrPaused) {
  add_four();
  run(kCommissionAll);
  policy("auto");
  ASSERT_TRUE(c().set_isolated(clock_.now(), "test"));
  ASSERT_TRUE(c().patch_node("w1", {{"spec", {{"vars", {{"y", 1}}}}}}, std::nullopt));
  run({{"kind", "check"}, {"nodes", {"m1"}}});
  EXPECT_TRUE(automatic().empty());
  ASSERT_TRUE(c().set_isolated(std::nullopt, "test"));
  run({{"kind", "check"}, {"nodes", {"m1"}}});
  EXPECT_EQ(wait_automatic(1).state, job::State::kSucceeded);

  clock_.advance(std::chrono::seconds(1));
  runs_.hold = true;
  const auto held = submit({{"kind", "update"}, {"nodes", {"m1"}}});
  ASSERT_TRUE(held);
  while (c().current(held->id)->state != job::State::kRunning) std::this_thread::yield();
  ASSERT_TRUE(c().pause_job(held->id));
  runs_.hold = false;
  while (c().current(held->id)->state != job::State::kPaused) std::this_thread::yield();
  ASSERT_TRUE(c().patch_node("w1", {{"spec", {{"vars", {{"y", 2}}}}}}, std::nullopt));
  clock_.advance(std::chrono::seconds(1));
  ASSERT_TRUE(c().resume_job(held->id));
  wait(held->id);
  const auto second = wait_automatic(2);
  EXPECT_EQ(second.state, job::State::kSucceeded);
  EXPECT_EQ(second.created, clock_.now()) << "not before the pause was over";
}

TEST_F(DomainTest, AutoVerifiesWhatCameBack) {
  add_four();
  run(kCommissionAll);
  policy("auto");
  runs_.scripts["check"].unreachable = {"w1"};
  run({{"kind", "check"}, {"nodes", {"w1"}}});
  runs_.scripts.erase("check");
  run({{"kind", "check"}, {"nodes", {"w1"}}});
  EXPECT_EQ(wait_automatic(1).kind, "verify");
  EXPECT_FALSE(has("w1", "NeedsVerification"));
}

TEST_F(DomainTest, SettingsOfTheCluster) {
  const auto set = [&](const Json& patch) { return c().patch_cluster(patch); };
  EXPECT_EQ(set({{"max_unavailable", 3}})->max_unavailable, "3");
  EXPECT_EQ(set({{"max_unavailable", "25%"}})->max_unavailable, "25%");
  EXPECT_EQ(set({{"name", "lab"}, {"accept_policy", "manual"}})->name, "lab");
  const auto before = c().state();
  for (const Json& bad : {Json{{"max_unavailable", 0}}, Json{{"max_unavailable", "101%"}},
                          Json{{"max_unavailable", nullptr}}, Json{{"drift_policy", "often"}},
                          Json{{"accept_policy", ""}}, Json{{"name", "{{ x }}"}}, Json{{"id", "x"}},
                          Json{{"drift_policy", "auto"}, {"max_unavailable", "x"}}}) {
    const auto refused = set(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::kInvalid) << bad;
  }
  EXPECT_EQ(c().state(), before);
  const auto stale = c().patch_cluster({{"drift_policy", "auto"}}, std::vector<int64_t>{1});
  EXPECT_EQ(stale.error().code, Code::kStale);
  ASSERT_TRUE(set({{"accept_policy", "always"}}));
  add_four();
  run(kCommissionAll);
  EXPECT_EQ(set({{"name", "other"}}).error().reason, "cluster_in_use");
  EXPECT_TRUE(set({{"name", "lab"}})) << "it has that name";
  const auto version = c().fleet()->cluster.version;
  restart();
  EXPECT_EQ(c().fleet()->cluster.version, version);
  EXPECT_EQ(c().fleet()->cluster.max_unavailable, "25%");
}

TEST_F(DomainTest, AJobForAnotherVersionOfItsNodeIsRefused) {
  add_four();
  const auto version = static_cast<int64_t>(node("m1").resource_version);
  const auto ask = [&](Json body, int64_t v) {
    body["kind"] = "check";
    return c().create_job(body, "test", "", std::vector<int64_t>{v});
  };
  EXPECT_EQ(ask({{"nodes", {"m1"}}}, version + 1).error().code, Code::kStale);
  EXPECT_EQ(ask({{"nodes", {"m1", "m2"}}}, version).error().reason, "bad_if_match");
  EXPECT_EQ(ask(Json::object(), version).error().reason, "bad_if_match");
  EXPECT_TRUE(ask({{"nodes", {"m1"}}}, version));
}

// Labels are the operator's: whatever a machine reports, none appears.
TEST_F(DomainTest, NothingReportedSetsALabel) {
  add_four();
  const fleet::Node before = node("w1");
  job::StageStatus stage;
  stage.def.name = "verify";
  stage.nodes = stage.def.nodes = {before.id};
  stage.def.services[before.id] = {"docker"};
  ansible::RunResult result;
  int n = 0;
  const auto feed = [&](Json event) {
    event.update({{"v", 1}, {"n", ++n}, {"t", "2026-11-30T10:00:00.000Z"}});
    result.feed_line(dump_json(event));
  };
  const Json labels{{"evil", "1"}};
  feed({{"event", "start"}, {"playbook", "verify.yml"}, {"ansible", "2.14"}, {"pid", 1}});
  for (const char* fact : {"clusterctl_hardware", "clusterctl_service_docker"}) {
    feed({{"event", "fact"},
          {"host", "w1"},
          {"name", fact},
          {"value",
           {{"v", 1},
            {"version", "24"},
            {"healthy", true},
            {"message", ""},
            {"serial", "S1"},
            {"labels", labels},
            {"spec", {{"labels", labels}}}}}});
  }
  feed({{"event", "stats"},
        {"hosts",
         {{"w1",
           {{"ok", 3},
            {"changed", 0},
            {"failures", 0},
            {"unreachable", 0},
            {"skipped", 0},
            {"rescued", 0},
            {"ignored", 0}}}}}});
  run::RunState state;
  state.phase = run::Phase::kFinished;
  const auto outcome = job::evaluate(stage, *c().fleet(), result, state, "", clock_.now());
  ASSERT_EQ(outcome.observations.size(), 1u);
  fleet::Node after = before;
  ASSERT_TRUE(apply(after, outcome.observations[0], clock_.now()));
  ASSERT_TRUE(after.status.hardware) << "the report was taken";
  EXPECT_EQ(after.status.hardware->serial, "S1");
  EXPECT_EQ(after.spec, before.spec);
}

}  // namespace
}  // namespace clusterctl::controller
