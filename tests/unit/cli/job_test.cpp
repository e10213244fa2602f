#include <algorithm>

#include "cli_fixture.h"

namespace clusterctl::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string sse(const std::string& id, const std::string& event, const std::string& data) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: " + event + "\ndata: " + data + "\n\n";
}
std::string stage(const std::string& name, const std::string& state) {
  return sse("", "stage",
             R"({"name":")" + name + R"(","state":")" + state +
                 R"(","nodes":["n1","n2"],"started":"2026-11-30T10:00:00.000Z","ended":)" +
                 (state == "running" ? "null" : R"("2026-11-30T10:00:09.000Z")") + "}");
}
std::string result(const std::string& id, int second, const std::string& host,
                   const std::string& service, const std::string& more = "") {
  return sse(id, "task",
             R"({"event":"result","t":"2026-11-30T10:00:0)" + std::to_string(second) +
                 R"(.000Z","host":")" + host + R"(","service":")" + service +
                 R"(","task":"install","status":"ok","changed":true)" + more + "}");
}

class AttachTest : public CliTest {
 protected:
  AttachTest() {
    rest.on("POST /v1/jobs", job(), 202);
    Json done = job("succeeded");
    done["started"] = "2026-11-30T10:00:00.000Z";
    done["ended"] = "2026-11-30T10:02:05.000Z";
    for (Json& n : done["nodes"]) n["state"] = "succeeded";
    rest.on("GET /v1/jobs/01job", job());
    rest.on("GET /v1/jobs/01job", done);
  }
  std::string first = stage("site", "running") + result("r:1", 1, "n1", "base") +
                      result("r:2", 2, "n1", "base") + result("r:3", 3, "n2", "base");
  std::string second = result("r:4", 4, "n1", "etcd") + stage("site", "succeeded") +
                       sse("", "end", R"({"state":"succeeded"})");
};

TEST_F(AttachTest, ProgressAsLines) {
  rest.on_stream("GET /v1/jobs/01job/events?follow=true", first + second);
  EXPECT_EQ(run({"node", "commission", "n1", "n2"}), 0);
  EXPECT_EQ(out(), R"(job 01job: commission 2 nodes
site: 2 nodes
     1s n1: base
     3s n2: base
     4s n1: etcd
site: succeeded after 9s
NODE  RESULT     STAGE  CLEANUP  CAUSE
n1    succeeded  -      -        -
n2    succeeded  -      -        -
job 01job succeeded after 2m05s
next: clusterctl status shows the cluster, clusterctl node ls its nodes
)");
  EXPECT_EQ(err(), "");
  EXPECT_FALSE(terminal.watching);
}

TEST_F(AttachTest, ADaemonThatRestartsIsOneLine) {
  rest.on_lost("GET /v1/jobs/01job/events?follow=true", "connection_lost", first);
  for (int i = 0; i < 8; ++i)
    rest.on_lost("GET /v1/jobs/01job/events?follow=true&since=r%3A3", "unreachable");
  rest.on_stream("GET /v1/jobs/01job/events?follow=true&since=r%3A3",
                 stage("site", "running") + second);
  EXPECT_EQ(run({"node", "commission", "n1", "n2"}), 0);
  const size_t at = out().find("connection lost, reconnecting\n");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(out().find("connection lost", at + 5), std::string::npos);
  EXPECT_EQ(out().find("site: 2 nodes", at), std::string::npos);
}

TEST_F(AttachTest, ADaemonThatStaysAwayIsUnreachable) {
  rest.on_lost("GET /v1/jobs/01job/events?follow=true", "unreachable");
  EXPECT_EQ(run({"node", "commission", "n1"}), 69);
  EXPECT_THAT(err(), HasSubstr("the job goes on; clusterctl job wait 01job"));
}

TEST_F(AttachTest, CtrlCDetaches) {
  rest.on_stream("GET /v1/jobs/01job/events?follow=true", first + second);
  terminal.interrupt_after = 3;
  EXPECT_EQ(run({"node", "commission", "n1"}), 130);
  EXPECT_EQ(err(),
            "\ndetached; the job goes on\nhint: clusterctl job wait 01job watches it again, "
            "clusterctl job cancel 01job stops it\n");
  EXPECT_FALSE(terminal.watching);
}

TEST_F(AttachTest, JsonGoesToOutProgressToErr) {
  rest.on_stream("GET /v1/jobs/01job/events?follow=true", first + second);
  EXPECT_EQ(run({"node", "commission", "n1", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(out())["state"], "succeeded");
  EXPECT_THAT(err(), HasSubstr("n1: etcd"));
}

TEST_F(AttachTest, FailureSaysWhoAndWhy) {
  rest.answers["GET /v1/jobs/01job"].pop_back();
  rest.on("GET /v1/jobs/01job",
          Json::parse(R"({"id":"01job","kind":"commission","state":"failed","reason":"node_failed",
      "error":"n2: etcd: start the member: port 2380 is in use","hint":"free the port","nodes":[{"name":"n1","state":"succeeded"},
      {"name":"n2","state":"failed","stage":"site","service":"etcd","task":"start the member","message":"port 2380\u001b[31m is in use",
       "cleanup":"cleaned","hint":"ss -ltnp"}]})"));
  rest.on_stream(
      "GET /v1/jobs/01job/events?follow=true",
      first +
          sse("r:4", "task",
              R"({"event":"result","t":"2026-11-30T10:00:05.000Z","host":"n2","service":"etcd","task":"start","status":"failed","msg":"port in use"})") +
          sse("", "end", "{}"));
  EXPECT_EQ(run({"node", "commission", "n1", "n2"}), 1);
  EXPECT_THAT(out(), HasSubstr("n2: failed: etcd: start: port in use\n"));
  EXPECT_THAT(out(), HasSubstr(R"(NODE  RESULT     STAGE  CLEANUP  CAUSE
n1    succeeded  -      -        -
n2    failed     site   cleaned  etcd: start the member: port 2380 [31m is in use
hint: n2: ss -ltnp
job 01job failed
)"));
  EXPECT_EQ(err(),
            "error: job 01job failed: n2: etcd: start the member: port 2380 is in use\n"
            "hint: free the port; clusterctl job logs 01job shows everything\n");
}

TEST_F(AttachTest, RedrawsOnATerminal) {
  terminal.redraw = true;
  terminal.columns = 40;
  rest.on_stream(
      "GET /v1/jobs/01job/events?follow=true",
      stage("site", "running") +
          sse("r:0", "task",
              R"({"event":"task","t":"2026-11-30T10:00:01.000Z","service":"base","task":"install a very long list of packages"})") +
          first + stage("site", "failed") + sse("", "end", "{}"));
  run({"node", "commission", "n1", "n2"});
  EXPECT_THAT(out(),
              HasSubstr("site: 2 nodes\nsite  0s\n  n1  waiting\n  n2  waiting\n\x1b[3A\x1b[J"));
  EXPECT_THAT(out(), Not(HasSubstr("1s n1: base\n")));
  EXPECT_THAT(out(), HasSubstr("site: failed after 9s\n"));
}

TEST_F(AttachTest, AStageThatIsToldOnceIsEnough) {
  const std::string early =
      sse("", "stage", R"({"name":"check","run":"a","state":"succeeded","nodes":["n1"]})");
  const std::string late =
      sse("", "stage", R"({"name":"site","run":"b","state":"running","nodes":["n1"]})");
  rest.on_stream("GET /v1/jobs/01job/events?follow=true",
                 early + result("a:1", 1, "n1", "base") + late + result("b:1", 5, "n1", "base"));
  rest.on_stream("GET /v1/jobs/01job/events?follow=true&since=b%3A1",
                 late + result("b:2", 7, "n1", "etcd") + sse("", "end", "{}"));
  EXPECT_EQ(run({"node", "commission", "n1", "n2"}), 0);
  EXPECT_THAT(out(), HasSubstr("check: 1 node\n     0s n1: base\nsite: 1 node\n     4s n1: "
                               "base\nconnection lost, reconnecting\n     6s n1: etcd\nNODE"));
}

TEST_F(AttachTest, AnObservationOfOtherNodesIsNotSilent) {
  rest.on_stream(
      "GET /v1/jobs/01job/events?follow=true",
      sse("", "stage", R"({"name":"observe","run":"a","state":"running","nodes":["m1","m2"]})") +
          result("a:1", 1, "m1", "etcd") + result("a:2", 2, "m2", "etcd") +
          result("a:3", 2, "m9", "etcd") +
          sse("", "stage", R"({"name":"site","run":"b","state":"running","nodes":["n1"]})") +
          result("b:1", 5, "n1", "base") + sse("", "end", "{}"));
  EXPECT_EQ(run({"node", "commission", "n1"}), 0);
  EXPECT_THAT(out(), HasSubstr("observe: 2 nodes\n     0s m1: etcd\n     1s m2: etcd\n"
                               "site: 1 node\n     4s n1: base\n"));
}

TEST_F(AttachTest, HostileEventsDoNotCrash) {
  rest.on_stream(
      "GET /v1/jobs/01job/events?follow=true",
      sse("", "task", "not json") + sse("", "task", "[]") +
          sse("", "stage", R"({"name":5,"state":"running","nodes":{"a":1}})") +
          sse("", "task", R"({"event":"result","host":"unknown","t":"x"})") +
          sse("", "task", R"({"event":7})") +
          sse("", "task",
              R"({"event":"result","host":"n1","service":"\u001b[2J","status":"failed","msg":["x"]})") +
          sse("", "strange", "x") + sse("", "end", "nonsense"));
  EXPECT_EQ(run({"node", "commission", "n1"}), 0);
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, FindingsOfACheckAreListed) {
  Json j = job("failed", "check");
  j["problems"] = Json::parse(
      R"([{"node":"n1","code":"disk","message":"disk full","hint":"free 5G"},{"node":"n2","message":"no sudo"}])");
  rest.on("GET /v1/jobs/01job", j);
  EXPECT_EQ(run({"job", "wait", "01job"}), 1);
  EXPECT_THAT(out(), HasSubstr("Found:\n  n1: disk full [disk]\n      hint: free 5G\n  n2: no "
                               "sudo\njob 01job failed\n"));
}

TEST_F(CliTest, WaitingBehindAnotherJobIsSaid) {
  Json j = job();
  j["waiting"] = {{"job", "01other"}, {"node", "n1"}};
  rest.on("GET /v1/jobs/01job", j);
  rest.on("GET /v1/jobs/01job", job("succeeded"));
  rest.on_stream("GET /v1/jobs/01job/events?follow=true", sse("", "end", "{}"));
  EXPECT_EQ(run({"job", "wait", "01job"}), 0);
  EXPECT_THAT(out(), HasSubstr("queued: waiting for job 01other on n1\n"));
}

TEST_F(CliTest, JobLsInspectCancel) {
  Json j = job("failed");
  j["started"] = "2026-11-30T10:00:00.000Z";
  j["ended"] = "2026-11-30T10:00:43.000Z";
  j["error"] = "n1: etcd: x";
  j["stages"] = Json::parse(
      R"([{"name":"check","state":"succeeded","nodes":["n1"],"run":"01run","started":"2026-11-30T10:00:00.000Z","ended":"2026-11-30T10:00:03.000Z"}])");
  rest.on("GET /v1/jobs?state=failed&limit=5", {{"jobs", {j}}});
  EXPECT_EQ(run({"job", "ls", "--state", "failed", "--limit=5"}), 0);
  EXPECT_EQ(out(),
            "ID     KIND        STATE   NODES  STARTED              TOOK  ERROR\n"
            "01job  commission  failed  n1,n2  2026-11-30 10:00:00  43s   n1: etcd: x\n");
  rest.on("GET /v1/jobs/last", j);
  EXPECT_EQ(run({"job", "get", "last"}), 0);
  EXPECT_THAT(
      out(),
      HasSubstr("Took:      43s\nError:     n1: etcd: x\n\nSTAGE  STATE      NODES  "
                "TOOK  SLOWEST TASK  RUN\ncheck  succeeded  1      3s    -             01run\n"));
  rest.on_problem("GET /v1/jobs/active", 404, "no_active_job", "no job is active");
  EXPECT_EQ(run({"job", "get", "active"}), 65);
  EXPECT_EQ(err(), "error: no job is active\n");
  rest.on("POST /v1/jobs/01job/cancel", j, 202);
  EXPECT_EQ(run({"job", "cancel", "01job", "--now"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs/01job/cancel"), (Json{{"now", true}}));
  EXPECT_EQ(run({"job", "wait", "last"}), 1);
}

TEST_F(CliTest, JobLogs) {
  rest.on_stream("GET /v1/jobs/last/log", "line 1\nline \x1b[31m2\n");
  EXPECT_EQ(run({"job", "logs"}), 0);
  EXPECT_EQ(out(), "line 1\nline \x1b[31m2\n");
  terminal.redraw = true;
  run({"job", "logs"});
  EXPECT_EQ(out(), "line 1\nline  [31m2\n");
}

TEST_F(CliTest, JobLogsFollowThroughARestart) {
  rest.on("GET /v1/jobs/last", job("running"));
  rest.on_lost("GET /v1/jobs/01job/log?follow=true", "connection_lost",
               sse("r:10", "log", R"({"run":"r","text":"one\ntwo\n"})"));
  rest.on_stream("GET /v1/jobs/01job/log?follow=true&since=r%3A10",
                 sse("r:20", "log", R"({"run":"r","text":"three"})") +
                     sse("", "end", R"({"state":"failed","error":"n1: x"})"));
  EXPECT_EQ(run({"job", "logs", "-f", "last"}), 1);
  EXPECT_EQ(out(), "one\ntwo\nthree\n");
  EXPECT_EQ(err(),
            "connection lost, reconnecting\nerror: job 01job failed: n1: x\nhint: clusterctl job "
            "inspect 01job\n");
}

TEST_F(CliTest, Events) {
  rest.on(
      "GET /v1/events?since=4",
      Json::parse(R"({"events":[{"seq":5,"time":"2026-11-30T10:00:00.000Z","type":"node.lifecycle",
      "node":"n1","job":"01j","message":"Allocated"}]})"));
  EXPECT_EQ(run({"events", "--since", "4"}), 0);
  EXPECT_EQ(out(), "2026-11-30 10:00:00  node.lifecycle   node=n1  job=01j  Allocated\n");
  rest.on_stream("GET /v1/events?follow=true", sse("", "gap", R"({"from":1,"to":4})") +
                                                   sse("5", "event", R"({"seq":5,"message":"x"})"));
  rest.on_problem("GET /v1/events?follow=true&since=5", 401, "token", "no token");
  EXPECT_EQ(run({"events", "-f", "--json"}), 77);
  EXPECT_EQ(out(), "{\"message\":\"x\",\"seq\":5}\n");
  EXPECT_THAT(err(), HasSubstr("events 1 to 4 are no longer kept"));
}

TEST_F(CliTest, JobLsSaysWhyAJobDoesNotMove) {
  Json waits = job();
  waits["waiting"] = {{"job", "01other"},
                      {"node", "n1"},
                      {"reason", "node"},
                      {"since", "2026-11-30T10:00:00.000Z"}};
  Json managers = waits, full = waits, paused = job("paused");
  managers["waiting"]["reason"] = "managers";
  full["waiting"] = {{"job", ""}, {"node", ""}, {"reason", "parallel_runs"}};
  paused["paused"] = "2026-11-30T11:00:00.000Z";
  rest.on("GET /v1/jobs", {{"jobs", {waits, managers, full, paused}}});
  EXPECT_EQ(run({"job", "ls"}), 0);
  for (const char* line :
       {"waiting for job 01other on n1 since 2026-11-30 10:00:00\n",
        "waiting for job 01other, which changes managers since 2026-11-30 10:00:00\n",
        "waiting for a free place (jobs.max_parallel_runs)\n",
        "paused since 2026-11-30 11:00:00\n"}) {
    EXPECT_THAT(out(), HasSubstr(line));
  }
  rest.on("GET /v1/jobs/01job", waits);
  EXPECT_EQ(run({"job", "inspect", "01job"}), 0);
  EXPECT_THAT(out(), HasSubstr("Waits:     waiting for job 01other on n1 since"));
}

TEST_F(CliTest, PauseAndResumeOfAPausedJob) {
  Json running = job("running");
  running["pause_requested"] = true;
  rest.on("POST /v1/jobs/active/pause", running, 202);
  EXPECT_EQ(run({"job", "pause", "active"}), 0);
  EXPECT_THAT(out(), HasSubstr("job 01job pauses at its next gate\n"));
  rest.on("GET /v1/jobs/01job", running);
  EXPECT_EQ(run({"job", "inspect", "01job"}), 0);
  EXPECT_THAT(out(), HasSubstr("running (pause requested)\n"));
  rest.on("POST /v1/jobs/01job/resume", job("running"), 202);
  EXPECT_EQ(run({"job", "resume", "01job", "--detach"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs/01job/resume"), Json::object());
  rest.on_problem("POST /v1/jobs/01x/resume", 409, "secrets_gone", "no longer kept");
  EXPECT_EQ(run({"job", "resume", "01x"}), 65);
  EXPECT_EQ(err(), "error: no longer kept\n");
}

TEST_F(CliTest, RetrySaysHowManyMatchAndAsks) {
  const Json preview{{"nodes", {"n1", "n2"}},
                     {"plan", {{"title", "commission 2 nodes"}, {"stages", Json::array()}}}};
  EXPECT_EQ(run({"job", "retry", "01old"}), 64) << "nobody can be asked";
  EXPECT_TRUE(rest.requests.empty());
  terminal.ask = true;
  terminal.answer = false;
  rest.on("POST /v1/jobs/01old/retry", preview);
  EXPECT_EQ(run({"job", "retry", "01old", "--failed", "--untouched"}), 65);
  EXPECT_THAT(err(), HasSubstr("2 nodes match: n1, n2\n"));
  EXPECT_EQ(rest.body("POST", "/v1/jobs/01old/retry"),
            (Json{{"failed", true}, {"untouched", true}, {"dry_run", true}}));
  EXPECT_EQ(rest.requests.size(), 1U) << "nothing was done";
  rest.answers["POST /v1/jobs/01old/retry"].clear();
  rest.on("POST /v1/jobs/01old/retry", preview);
  rest.on("POST /v1/jobs/01old/retry", job(), 202);
  EXPECT_EQ(run({"job", "retry", "01old", "--yes", "--detach"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs/01old/retry"),
            (Json{{"failed", true}, {"untouched", false}}));
}

TEST_F(CliTest, TimeLimitsGoIntoTheRequest) {
  rest.on("POST /v1/jobs", job(), 202);
  EXPECT_EQ(run({"node", "verify", "n1", "--timeout", "2h", "--silence-timeout=90s", "--detach"}),
            0);
  EXPECT_EQ(
      rest.body("POST", "/v1/jobs"),
      (Json{{"kind", "verify"}, {"nodes", {"n1"}}, {"timeout", "2h"}, {"silence_timeout", "90s"}}));
}

TEST_F(CliTest, ALimitBeyondOnePageIsReadInPages) {
  Json first{{"jobs", Json::array()}, {"next", "01b"}}, second{{"jobs", {job()}}, {"next", "01a"}};
  for (int i = 0; i < 1000; ++i) first["jobs"].push_back(job());
  rest.on("GET /v1/jobs?limit=1000", first);
  rest.on("GET /v1/jobs?limit=1&after=01b", second);
  EXPECT_EQ(run({"job", "ls", "-q", "--limit", "1001"}), 0);
  const std::string all = out();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1001);
  EXPECT_EQ(rest.seen().size(), 2u) << "no further page than asked for";
}

}  // namespace
}  // namespace clusterctl::cli
