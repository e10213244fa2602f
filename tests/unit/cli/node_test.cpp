#include "cli_fixture.h"

namespace clusterctl::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json fleet(const std::vector<Json>& nodes) {
  return Json{{"nodes", nodes}};
}

TEST_F(CliTest, NodeLs) {
  Json n1 = node("n1", "Allocated", "manager");
  n1["status"]["services"] = Json::parse(R"({
      "swarm":{"healthy":true,"version":"20.10.24","observed":"2026-11-30T10:00:00.000Z","role":"leader"},
      "docker":{"healthy":true,"version":"20.10.24"}})");
  Json n2 = node("n2", "Allocated", "manager");
  n2["status"]["services"] =
      Json::parse(R"({"swarm":{"healthy":true,"observed":"2026-11-30T11:00:00.000Z",
      "members":[{"name":"n2","leader":true},{"name":"n1","leader":false}]},"etcd":{"healthy":false,"version":"3.4.23"}})");
  n2["status"]["conditions"] = Json::parse(R"([{"type":"Drifted"}])");
  Json n3 = node("n3");
  n3["status"]["applied"] = Json::parse(
      R"({"host_group":"service-master","capabilities":["b","a"],"availability":"active"})");
  n3["spec"]["availability"] = "drain";
  n3["spec"]["capabilities"] = {"c"};
  Json n4 = node("n4", "Unallocated", "");
  n4["spec"]["host_group"] = "";
  rest.on("GET /v1/nodes", fleet({n4, n3, n1, n2}));
  EXPECT_EQ(run({"node", "ls"}), 0);
  EXPECT_EQ(out(),
            "ID            NAME  IP        STATUS       AVAILABILITY  ROLE              GROUP      "
            "                    CAPABILITIES  HEALTH\n"
            "idn1aaaaaaaa  n1    10.0.0.1  Allocated    active        manager           "
            "service-master                 -             healthy\n"
            "idn2aaaaaaaa  n2    10.0.0.2  Allocated    active        manager (leader)  "
            "service-master                 -             Drifted, unhealthy: etcd\n"
            "idn3aaaaaaaa  n3    10.0.0.3  Allocated    active→drain  worker            "
            "service-master→service-worker  a,b→c         -\n"
            "idn4aaaaaaaa  n4    10.0.0.4  Unallocated  active        -                 -          "
            "                    -             -\n");
  const std::string table = out();
  run({"nodes", "get"});
  EXPECT_EQ(out(), table);
  run({"node", "ls", "-o", "wide"});
  EXPECT_THAT(out(), HasSubstr("Discovered  20.10.24  swarm 20.10.24"));
  EXPECT_THAT(out(), HasSubstr("etcd 3.4.23, swarm"));
  run({"node", "ls", "-q"});
  EXPECT_EQ(out(), "n1\nn2\nn3\nn4\n");
  run({"node", "ls", "-o", "name"});
  EXPECT_EQ(out(), "n1\nn2\nn3\nn4\n");
  run({"--json", "node", "ls"});
  const std::string json = out();
  EXPECT_EQ(Json::parse(json), (Json{n1, n2, n3, n4}));
  run({"node", "ls", "-o", "json"});
  EXPECT_EQ(out(), json);
}

TEST_F(CliTest, NodeLsFiltersAndPages) {
  rest.on("GET /v1/nodes?lifecycle=Allocated&selector=rack%3Dr3",
          {{"nodes", {node("n1")}}, {"next", "c1"}});
  rest.on("GET /v1/nodes?lifecycle=Allocated&selector=rack%3Dr3&after=c1",
          fleet({node("n2"), node("n3", "Allocated", "manager")}));
  EXPECT_EQ(run({"node", "ls", "--filter", "status=allocated", "--filter", "role=worker", "-l",
                 "rack=r3", "-q"}),
            0);
  EXPECT_EQ(out(), "n1\nn2\n");
}

TEST_F(CliTest, EmptyFleetSaysWhatToDo) {
  rest.on("GET /v1/nodes", fleet({}));
  EXPECT_EQ(run({"node", "ls"}), 0);
  EXPECT_THAT(out(), HasSubstr("next: clusterctl node add"));
  run({"node", "ls", "-o", "json"});
  EXPECT_EQ(out(), "[]\n");
}

TEST_F(CliTest, NodeAdd) {
  rest.on("POST /v1/nodes", node("n4"), 201);
  EXPECT_EQ(run({"node",
                 "add",
                 "n4",
                 "--addr",
                 "10.0.0.4",
                 "--ssh-user=ops",
                 "--ssh-port",
                 "2222",
                 "--host-key",
                 "ssh-ed25519 AAAA me@x",
                 "--jump",
                 "a@b",
                 "-g",
                 "service-worker",
                 "--capability",
                 "a,b",
                 "--capabilities=c",
                 "--label",
                 "rack=3",
                 "--var",
                 "x={\"y\":1}",
                 "--var",
                 "v=20.10",
                 "--availability",
                 "drain"}),
            0);
  EXPECT_EQ(rest.body("POST", "/v1/nodes"),
            Json::parse(R"({"name":"n4","spec":{"addr":"10.0.0.4","host_group":"service-worker",
      "ssh":{"user":"ops","port":2222,"host_key":"ssh-ed25519 AAAA","jump":"a@b"},"capabilities":["a","b","c"],
      "labels":{"rack":"3"},"vars":{"x":{"y":1},"v":"20.10"},"availability":"drain"}})"));
  EXPECT_EQ(out(), "node n4 added with id idn4aaaaaaaa\nnext: clusterctl node check n4\n");
}

TEST_F(CliTest, NodeInspect) {
  Json n = node("n1");
  n["status"]["services"] = Json::parse(
      R"({"etcd":{"version":"3.4","healthy":false,"message":"no\u001b[2J quorum","role":"member"}})");
  n["status"]["conditions"] = Json::parse(
      R"([{"type":"Failed","since":"2026-11-30T10:00:00.000Z","job":"01j","reason":"etcd did not start"}])");
  n["spec"]["labels"] = {{"rack", "r3"}};
  n["spec"]["vars"] = {{"p", 5}};
  rest.on("GET /v1/nodes/n1", n);
  EXPECT_EQ(run({"node", "inspect", "n1"}), 0);
  EXPECT_EQ(out(), R"(Name:         n1
Id:           idn1aaaaaaaa
Address:      10.0.0.1
Status:       Allocated
Presence:     Discovered
Acceptance:   accepted
Group:        service-worker
Role:         worker
Availability: active
Health:       Failed, unhealthy: etcd
Labels:       rack=r3
Variables:    p=5
Services:
  SERVICE  VERSION  HEALTHY  ROLE    OBSERVED  MESSAGE
  etcd     3.4      no       member  -         no [2J quorum
Conditions:
  CONDITION  SINCE                JOB  REASON
  Failed     2026-11-30 10:00:00  01j  etcd did not start
)");
  run({"node", "get", "n1", "--json"});
  EXPECT_EQ(Json::parse(out()), n);
  rest.on_problem("GET /v1/nodes/a%2Fb", 404, "no_node", "no node a/b");
  EXPECT_EQ(run({"node", "inspect", "a/b"}), 65);
}

TEST_F(CliTest, NodeRmAndLabel) {
  rest.on("DELETE /v1/nodes/n1", nullptr, 204);
  rest.on_problem("DELETE /v1/nodes/n2", 409, "commissioned", "n2 is commissioned",
                  "decommission it");
  for (const char* name : {"n1", "n2"}) rest.on(std::string("GET /v1/nodes/") + name, node(name));
  rest.on("POST /v1/plans", {{"nothing", false}});
  // It was commissioned after the plan was made: what is done is told.
  EXPECT_EQ(run({"node", "rm", "n2", "n1"}), 65);
  EXPECT_EQ(out(), "node n1 removed\n");
  EXPECT_EQ(err(), "error: n2 is commissioned; 1 of these are done: n1\nhint: decommission it\n");
  rest.on_problem("GET /v1/nodes/n8", 404, "no_such_node", "there is no node n8");
  rest.on_problem("GET /v1/nodes/n9", 404, "no_such_node", "there is no node n9");
  rest.requests.clear();
  EXPECT_EQ(run({"node", "rm", "n1", "n8", "n9"}), 65);
  for (const auto& request : rest.requests) EXPECT_EQ(request.method, "GET");
  EXPECT_NE(err().find("n8"), std::string::npos);
  EXPECT_NE(err().find("n9"), std::string::npos);
  rest.on("PATCH /v1/nodes/n1", node("n1"));
  EXPECT_EQ(run({"node", "label", "n1", "rack=r3", "old-"}), 0);
  EXPECT_EQ(rest.body("PATCH", "/v1/nodes/n1"),
            Json::parse(R"({"spec":{"labels":{"rack":"r3","old":null}}})"));
}

TEST_F(CliTest, CommissionSendsWhatWasSaid) {
  rest.on("POST /v1/jobs", job(), 202);
  EXPECT_EQ(run({"node", "commission", "n1", "n2", "-g", "service-worker",
                 "--capabilities=dtr-replica,storage", "--availability=drain", "-e", R"({"a":1})",
                 "--var", "b=x", "--force", "--allow-outage", "--keep-on-failure", "--detach"}),
            0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs"),
            Json::parse(R"({"kind":"commission","nodes":["n1","n2"],"host_group":"service-worker",
      "capabilities":["dtr-replica","storage"],"availability":"drain","vars":{"a":1,"b":"x"},"force":true,"allow_outage":true,
      "keep_on_failure":true})"));
  EXPECT_EQ(rest.requests.back().headers.at("Idempotency-Key").size(), 32u);
  EXPECT_EQ(out(), "job 01job: commission 2 nodes\nnext: clusterctl job wait 01job\n");
  EXPECT_EQ(run({"node", "decommission", "n1", "--level=images", "--force",
                 "--i-have-powered-it-off", "-y", "--detach", "-q"}),
            0);
  EXPECT_EQ(
      rest.body("POST", "/v1/jobs"),
      Json::parse(
          R"({"kind":"decommission","nodes":["n1"],"level":"images","force":true,"powered_off":true})"));
  EXPECT_EQ(out(), "01job\n");
}

TEST_F(CliTest, BadVariablesSendNothing) {
  for (const char* bad : {"[]", "{\"a\":1,\"a\":2}", "null"}) {
    EXPECT_EQ(run({"node", "commission", "n1", "-e", bad}), 64) << bad;
  }
  EXPECT_EQ(run({"node", "commission"}), 64);
  EXPECT_EQ(run({"node", "decommission", "--yes"}), 64);
  EXPECT_THAT(rest.requests, IsEmpty());
}

const char* const kPlan = R"({"plan":{"kind":"commission","title":"commission 3 nodes","stages":[
    {"name":"check","nodes":["n1","n2","n3"],"parallel":"all","services":{}},
    {"name":"observe","nodes":["m0"],"parallel":"all","services":{}},
    {"name":"site","nodes":["n1","n2","n3"],"parallel":"one-by-one","services":{"n1":["base","etcd"],"n2":["base","etcd"],"n3":["base"]}}],
    "quorum":{"etcd":{"before":1,"after":3,"tolerates":1}},"warnings":[{"node":"","message":"even","hint":"odd"}]}})";

TEST_F(CliTest, PlanIsPrintedAndNothingDone) {
  rest.on("POST /v1/jobs", Json::parse(kPlan));
  EXPECT_EQ(run({"node", "commission", "-g", "service-master", "--plan"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs"),
            Json::parse(R"({"kind":"commission","host_group":"service-master","dry_run":true})"));
  EXPECT_EQ(out(), R"(plan: commission 3 nodes
  1. check (3 nodes)
     n1, n2, n3
  2. observe (1 node)
     m0
  3. site (3 nodes), managers one by one
     n1, n2: base etcd
     n3: base
order: by clusterctl, managers one after the other, then the others in parallel
point of no return: stage 3 (site); nothing is changed on nodes before it
QUORUM  BEFORE  AFTER  TOLERATES
etcd    1       3      1
warning: even
  hint: odd
next: nothing was done; the same without --plan does it
)");
  EXPECT_EQ(rest.requests.size(), 1u);
}

TEST_F(CliTest, ConfirmationIsAskedOrRefusedNeverAHang) {
  EXPECT_EQ(run({"node", "decommission", "n1"}), 64);
  EXPECT_EQ(run({"node", "commission", "--host-group=service-master"}), 64);
  EXPECT_THAT(err(), HasSubstr("--yes"));
  EXPECT_THAT(rest.requests, IsEmpty());
  terminal.ask = true;
  rest.on("POST /v1/jobs", Json::parse(kPlan));
  EXPECT_EQ(run({"node", "commission", "--host-group=service-master"}), 65);
  EXPECT_THAT(terminal.questions, ElementsAre("Commission 3 nodes (n1, n2, n3)?"));
  EXPECT_EQ(rest.requests.size(), 1u);
  terminal.answer = true;
  rest.answers.clear();
  rest.on("POST /v1/jobs", Json::parse(kPlan));
  rest.on("POST /v1/jobs", job(), 202);
  EXPECT_EQ(run({"node", "decommission", "n1", "--detach"}), 0);
  EXPECT_EQ(terminal.questions.back(), "Decommission n1, n2, n3?");
  EXPECT_EQ(rest.body("POST", "/v1/jobs").contains("dry_run"), false);
}

// The daemon knows which nodes can be meant.
TEST_F(CliTest, CheckAndVerifyWithoutNamesLeaveTheChoiceToTheDaemon) {
  rest.on("POST /v1/jobs", job(), 202);
  EXPECT_EQ(run({"node", "check", "--detach"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs"), (Json{{"kind", "check"}}));
  EXPECT_EQ(run({"node", "verify", "-g", "service-worker", "--detach"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs"),
            (Json{{"kind", "verify"}, {"host_group", "service-worker"}}));
  EXPECT_EQ(run({"node", "check", "-l", "rack=r3", "--detach"}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/jobs"), (Json{{"kind", "check"}, {"selector", "rack=r3"}}));
}

TEST_F(CliTest, LabelsOfSeveralNodes) {
  rest.on("POST /v1/plans", {{"nothing", false}});
  Json n1 = node("n1"), n2 = node("n2");
  n1["resource_version"] = 4;
  n2["resource_version"] = 7;
  rest.on("GET /v1/nodes?selector=rack%3Dr3", fleet({n1, n2}));
  rest.on("GET /v1/nodes/n1", n1);
  rest.on("GET /v1/nodes/n2", n2);
  rest.on("PATCH /v1/nodes/n1", n1);
  rest.on("PATCH /v1/nodes/n2", n2);
  EXPECT_EQ(run({"node", "label", "-l", "rack=r3", "zone=east", "old-"}), 0);
  EXPECT_EQ(out(), "node n1 labelled\nnode n2 labelled\n");
  EXPECT_EQ(rest.requests.back().headers.at("If-Match"), "\"7\"") << "as it was selected";
  EXPECT_EQ(run({"node", "label", "n1", "n2", "zone=east"}), 0);
  EXPECT_EQ(rest.requests.back().headers.count("If-Match"), 0u);
  EXPECT_EQ(run({"node", "label", "n1", "--if-match", "4", "zone=east"}), 0);
  EXPECT_EQ(rest.requests.back().headers.at("If-Match"), "\"4\"");
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"node", "label", "a=b"},
        {"node", "label", "n1"},
        {"node", "label", "-l", "rack=r3", "n1", "a=b"},
        {"node", "label", "n1", "n2", "--if-match", "4", "a=b"},
        {"node", "label", "n1", "a=b", "n2"}}) {
    EXPECT_EQ(run(bad), 64) << testing::PrintToString(bad);
  }
}

TEST_F(CliTest, AcceptanceAllocationAndHistory) {
  rest.on("GET /v1/nodes/n1", node("n1"));
  rest.on("POST /v1/nodes/n1/accept", node("n1"));
  EXPECT_EQ(run({"node", "accept", "n1", "-g", "service-worker", "--label", "rack=r3", "--reason",
                 "new blade"}),
            0);
  EXPECT_EQ(rest.body("POST", "/v1/nodes/n1/accept"),
            Json::parse(
                R"({"host_group":"service-worker","labels":{"rack":"r3"},"reason":"new blade"})"));
  rest.on("POST /v1/nodes/n1/forget-hostkey", node("n1"));
  EXPECT_EQ(run({"node", "forget-hostkey", "n1"}), 0);
  rest.on("PATCH /v1/nodes/n1", node("n1"));
  EXPECT_EQ(run({"node", "allocate", "n1", "--as", "spare"}), 0);
  EXPECT_EQ(rest.body("PATCH", "/v1/nodes/n1"), Json::parse(R"({"spec":{"allocation":"spare"}})"));
  EXPECT_EQ(run({"node", "allocate", "n1", "--as", "gone"}), 64);
  rest.on("GET /v1/nodes/n1/history", Json::parse(R"({"node":"n1","history":[
    {"time":"2026-11-30T10:00:00.000Z","type":"job","message":"verify succeeded","job":"01job","by":"uid:0","reason":""}]})"));
  EXPECT_EQ(run({"node", "history", "n1"}), 0);
  EXPECT_EQ(out(),
            "TIME                 WHAT              BY     JOB    REASON\n"
            "2026-11-30 10:00:00  verify succeeded  uid:0  01job  -\n");
}

TEST_F(CliTest, SettingsOfTheCluster) {
  rest.on("PATCH /v1/cluster", Json::parse(R"({"name":"lab","accept_policy":"manual",
    "max_unavailable":"10%","drift_policy":"auto","version":3})"));
  EXPECT_EQ(run({"cluster", "update", "--drift-policy", "auto", "--max-unavailable", "10%",
                 "--if-match", "2"}),
            0);
  EXPECT_EQ(rest.body("PATCH", "/v1/cluster"),
            Json::parse(R"({"drift_policy":"auto","max_unavailable":"10%"})"));
  EXPECT_EQ(rest.requests.back().headers.at("If-Match"), "\"2\"");
  EXPECT_EQ(run({"cluster", "update"}), 64);
  EXPECT_EQ(run({"cluster", "update", "--drift-policy", "sometimes"}), 64);
}

TEST_F(CliTest, ALostAnswerIsAskedForWithTheSameKey) {
  rest.on_lost("POST /v1/jobs", "connection_lost");
  rest.on("POST /v1/jobs", job(), 202);
  EXPECT_EQ(run({"node", "commission", "n1", "--detach"}), 0);
  ASSERT_EQ(rest.requests.size(), 2u);
  EXPECT_EQ(rest.requests[0].headers, rest.requests[1].headers);
}

}  // namespace
}  // namespace clusterctl::cli
