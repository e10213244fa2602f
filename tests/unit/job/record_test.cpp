#include <gtest/gtest.h>

#include "job/job_json.h"

namespace clusterctl::job {
namespace {

Job example() {
  Job job;
  job.id = "01abc";
  job.kind = "commission";
  job.title = "commission 1 node";
  job.state = State::kRunning;
  job.cancel_requested = true;
  job.error = "line";
  job.created = Time(std::chrono::milliseconds(5));
  job.started = Time(std::chrono::milliseconds(6));
  NodeOutcome node;
  node.node = "id1";
  node.name = "node1";
  node.state = OutcomeState::kFailed;
  node.touched = true;
  node.cleanup = "cleaned";
  node.begun = node.was_out = true;
  job.nodes.push_back(node);
  job.roles["id1"] = fleet::Role::kManager;
  job.changes["id1"] = {"service-master", {"ucp-controller"}, fleet::Availability::kDrain};
  job.changes["id1"].labels = std::map<std::string, std::string>{{"rack", "r1"}};
  job.undo["id1"] = {"", {}, fleet::Availability::kActive};
  job.undo["id1"].vars = Json{{"a", 1}};
  job.parts["id1"] = "commission";
  StageStatus stage;
  stage.def.name = "site";
  stage.def.playbook = "site.yml";
  stage.def.nodes = {"id1"};
  stage.def.services["id1"] = {"base", "docker"};
  stage.def.vars.initiator = "node1";
  stage.def.vars.lost.push_back({"old", "10.0.0.1", {{"etcd", "ff"}}});
  stage.run = "run1";
  stage.nodes = {"id1"};
  stage.state = StageState::kInterrupted;
  stage.closing = true;
  stage.def.availability["id1"] = fleet::Availability::kDrain;
  stage.def.restores = true;
  stage.def.batch = 3;
  stage.def.in_service = false;
  stage.def.vars.drain_deadline = 0;
  stage.def.as_before = true;
  stage.def.about = {"id2"};
  stage.fences = {"run0"};
  job.stages.push_back(stage);
  job.cleanup = stage.def;
  job.put_back["id1"] = {stage.def};
  job.problems.push_back({"c", "m", "h", "node1"});
  job.pause = {true, Time(std::chrono::milliseconds(7)), std::chrono::milliseconds(8)};
  job.overrun = {"timeout", "too long", Time(std::chrono::milliseconds(9))};
  job.continuation = {"01old", "01new", {{"id1", {"check", "site"}}}, true, true, "01first"};
  job.request.kind = "commission";
  job.request.timeout = std::chrono::seconds(90);
  job.ledger.push_back({"id1", "availability", "active", "drain", UndoState::kDone});
  return job;
}

TEST(JobRecord, KeepsEverything) {
  const Job job = example();
  const Json record = to_record(job);
  const auto again = from_record(record);
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(to_record(*again), record);
  EXPECT_EQ(again->stages[0].def.services.at("id1"), (std::vector<std::string>{"base", "docker"}));
  EXPECT_EQ(again->roles.at("id1"), fleet::Role::kManager);
  EXPECT_TRUE(again->stages[0].closing);
  EXPECT_EQ(again->stages[0].fences, job.stages[0].fences);
  EXPECT_EQ(again->pause.sum, job.pause.sum);
  EXPECT_EQ(again->overrun.error, "too long");
  EXPECT_EQ(again->continuation.passed, job.continuation.passed);
  EXPECT_EQ(again->request.timeout, job.request.timeout);
  EXPECT_EQ(again->stages[0].def.availability.at("id1"), fleet::Availability::kDrain);
  EXPECT_EQ(again->stages[0].def.batch, 3);
  EXPECT_EQ(again->stages[0].def.in_service, false);
  EXPECT_EQ(again->continuation.order, "01first");
  EXPECT_EQ(again->stages[0].def.vars.drain_deadline, 0);
  EXPECT_TRUE(again->nodes[0].begun);
  EXPECT_EQ(again->part_of("id1"), "commission");
  EXPECT_TRUE(again->put_back.at("id1")[0].as_before);
  EXPECT_EQ(again->put_back.at("id1")[0].about, (std::vector<std::string>{"id2"}));
  EXPECT_EQ(again->changes.at("id1"), job.changes.at("id1"));
  EXPECT_EQ(again->undo.at("id1"), job.undo.at("id1"));
  ASSERT_EQ(again->ledger.size(), 1U);
  EXPECT_EQ(again->ledger[0].state, UndoState::kDone);
}

TEST(JobRecord, OfAnOlderDaemonCanBeRead) {
  Json record = to_record(example());
  record.erase("control");
  record["stages"][0].erase("fences");
  const auto job = from_record(record);
  ASSERT_TRUE(job) << job.error().line();
  EXPECT_FALSE(job->pause.requested);
}

TEST(JobRecord, OneOfAnEarlierVersionHasNoLedger) {
  Json record = to_record(example());
  record.erase("ledger");
  for (const char* key : {"availability", "restores", "batch", "in_service"})
    record["stages"][0]["def"].erase(key);
  record["stages"][0]["def"]["vars"].erase("drain_deadline");
  record["nodes"][0].erase("begun");
  record["nodes"][0].erase("was_out");
  const auto job = from_record(record);
  ASSERT_TRUE(job) << job.error().line();
  EXPECT_TRUE(job->ledger.empty());
  EXPECT_EQ(job->stages[0].def.batch, 0);
}

TEST(JobRecord, RefusesDamage) {
  Json record = to_record(example());
  record["state"] = "sideways";
  EXPECT_FALSE(from_record(record));
  record = to_record(example());
  record.erase("stages");
  EXPECT_FALSE(from_record(record));
}

}  // namespace
}  // namespace clusterctl::job
