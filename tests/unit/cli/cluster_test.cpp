#include <stdlib.h>

#include "base/files.h"
#include "cli/inventory_import.h"
#include "cli_fixture.h"

namespace clusterctl::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CliTest, GlobalGet) {
  rest.on("GET /v1/globals", Json::parse(R"({"vars":{"b":"x","a":{"k":[1]}},"revision":3})"));
  EXPECT_EQ(run({"global", "get"}), 0);
  EXPECT_EQ(out(), "NAME  VALUE\na     {\"k\":[1]}\nb     \"x\"\n");
  EXPECT_EQ(run({"global", "get", "-o", "yaml"}), 0);
  EXPECT_EQ(out(), "a:\n  k:\n    - 1\nb: x\n");
  EXPECT_EQ(run({"global", "get", "missing"}), 65);
}

TEST_F(CliTest, GlobalSet) {
  EXPECT_EQ(run({"global", "set"}), 64);
  EXPECT_EQ(run({"global", "set", "-e", "{}"}), 64);
  EXPECT_EQ(run({"global", "set", "-e", "[]"}), 64);
  EXPECT_EQ(run({"global", "set", "a=1", "--merge", "--replace"}), 64);
  EXPECT_EQ(run({"global", "set", "a=1", "--clear"}), 64);
  EXPECT_THAT(rest.requests, IsEmpty());
  rest.on("PATCH /v1/globals",
          Json::parse(R"({"vars":{"a":1},"warnings":[{"code":"unknown_variable",
      "message":"no role knows the variable \"a\"","hint":"did you mean \"b\"?"}]})"));
  rest.on("PUT /v1/globals", Json::parse(R"({"vars":{}})"));
  EXPECT_EQ(run({"global", "set", "a=1", "old-", "--extra-vars", R"({"o":{"y":{"n":2}}})"}), 0);
  EXPECT_EQ(rest.body("PATCH", "/v1/globals"),
            Json::parse(R"({"vars":{"a":1,"old":null,"o":{"y":{"n":2}}}})"));
  EXPECT_EQ(err(), "warning: no role knows the variable \"a\"; did you mean \"b\"?\n");
  EXPECT_EQ(run({"global", "set", "a=1", "--replace"}), 0);
  EXPECT_EQ(rest.body("PUT", "/v1/globals"), Json::parse(R"({"vars":{"a":1}})"));
  EXPECT_EQ(run({"global", "set", "--clear"}), 0);
  EXPECT_EQ(rest.body("PUT", "/v1/globals"), Json::parse(R"({"vars":{}})"));
}

TEST_F(CliTest, StatusAtAGlance) {
  rest.on("GET /v1/status",
          Json::parse(R"({"nodes":{"total":4,"Allocated":3,"Unallocated":1,"Cancelled":0},
      "services":{"etcd":{"members":3,"reachable":2,"tolerates":0,"leader":"n1"}},"vip":{"address":"10.0.0.100","holders":["n1"]},
      "failed_jobs":[{"id":"01f","state":"failed","title":"commission 1 node","error":"n4: x"}],"running_jobs":[],
      "problems":[{"node":"n4","message":"etcd is unhealthy","hint":"verify it"}]})"));
  EXPECT_EQ(run({"status"}), 0);
  EXPECT_EQ(out(), R"(Nodes:    4 (3 Allocated, 1 Unallocated)
VIP:      10.0.0.100 held by n1

SERVICE  MEMBERS  REACHABLE  TOLERATES  LEADER
etcd     3        2          0          n1

Failed jobs:
ID   STATE   TITLE              ERROR
01f  failed  commission 1 node  n4: x

Problems:
  n4: etcd is unhealthy
      hint: verify it
)");
}

TEST_F(CliTest, VersionOfBothSides) {
  rest.on("GET /v1/version",
          Json::parse(R"({"version":"0.1.0","api":1,"ansible":"2.14.3","playbooks":"abc"})"));
  EXPECT_EQ(run({"version"}), 0);
  EXPECT_EQ(
      out(),
      "client:    0.1.0\ndaemon:    0.1.0\napi:       1\nansible:   2.14.3\nplaybooks: abc\n");
  EXPECT_EQ(err(), "");
  rest.answers.clear();
  rest.on("GET /v1/version", Json::parse(R"({"version":"0.2.0","api":2})"));
  EXPECT_EQ(run({"version"}), 0);
  EXPECT_EQ(err(), "warning: this program speaks API 1, the daemon 2\n");
  rest.answers.clear();
  rest.on_lost("GET /v1/version", "unreachable");
  EXPECT_EQ(run({"version"}), 69);
  EXPECT_EQ(out(), "client:    0.1.0\n");
}

TEST_F(CliTest, DynamicInventory) {
  rest.on("GET /v1/inventory", Json::parse(R"({"_meta":{"hostvars":{"n1":{"a":1}}}})"));
  EXPECT_EQ(run({"inventory", "--list"}), 0);
  EXPECT_EQ(Json::parse(out())["_meta"]["hostvars"]["n1"]["a"], 1);
  EXPECT_EQ(run({"inventory", "--host", "n1"}), 0);
  EXPECT_EQ(Json::parse(out()), (Json{{"a", 1}}));
  EXPECT_EQ(run({"inventory", "--host", "nx"}), 65);
  EXPECT_EQ(run({"inventory"}), 64);
  EXPECT_EQ(run({"inventory", "--list", "--host", "n1"}), 64);
}

TEST_F(CliTest, Completion) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(run({"completion", shell}), 0);
    EXPECT_THAT(out(), HasSubstr("__complete"));
  }
  EXPECT_EQ(run({"completion", "tcsh"}), 64);
}

class ImportTest : public CliTest {
 protected:
  ImportTest() {
    char path[] = "/tmp/clusterctl_import_XXXXXX";
    dir = mkdtemp(path);
    write(
        "all: {vars: {service_vip: 10.0.0.9}, children: {service-master: {hosts: {n1: "
        "{ansible_host: 10.0.0.1, x: {a: 1}}, "
        "n2: {ansible_host: 10.0.0.2}}}}}");
    rest.on("GET /v1/cluster", Json::parse(R"({"name":"c"})"));
    rest.on("GET /v1/nodes", Json{{"nodes", Json::array()}});
    rest.on("GET /v1/globals", Json::parse(R"({"vars":{}})"));
  }
  ~ImportTest() override { fs::remove_all(dir); }
  void write(const std::string& yaml) { EXPECT_TRUE(write_file_atomic(dir + "/hosts.yml", yaml)); }
  void known(std::vector<Json> nodes) {
    rest.answers["GET /v1/nodes"].clear();
    rest.on("GET /v1/nodes", Json{{"nodes", nodes}});
  }
  std::string dir;
};

TEST_F(ImportTest, CreatesNodesAndGlobals) {
  rest.on("POST /v1/nodes", node("n1"), 201);
  rest.on("PATCH /v1/globals", Json::object());
  EXPECT_EQ(run({"inventory", "import", dir + "/hosts.yml"}), 0);
  EXPECT_EQ(out(),
            "n1: created\nn2: created\nglobals: service_vip\n2 created, 0 updated, 0 unchanged\n"
            "next: clusterctl node check, then clusterctl node commission --host-group=GROUP\n");
  EXPECT_EQ(
      rest.body("POST", "/v1/nodes"),
      Json::parse(R"({"name":"n2","spec":{"addr":"10.0.0.2","host_group":"service-master"}})"));
  EXPECT_EQ(rest.body("PATCH", "/v1/globals"),
            Json::parse(R"({"vars":{"service_vip":"10.0.0.9"}})"));
}

TEST_F(ImportTest, SecondTimeChangesNothing) {
  Json n1 = node("n1", "Allocated", "manager");
  n1["spec"]["vars"] = Json::parse(R"({"x":{"a":1},"more":1})");
  known({n1, node("n2", "Allocated", "manager")});
  rest.answers["GET /v1/globals"].clear();
  rest.on("GET /v1/globals", Json::parse(R"({"vars":{"service_vip":"10.0.0.9","other":{"x":1}}})"));
  EXPECT_EQ(run({"inventory", "import", dir + "/hosts.yml"}), 0);
  EXPECT_THAT(out(), HasSubstr("0 created, 0 updated, 2 unchanged"));
  EXPECT_EQ(rest.requests.size(), 3u);
}

TEST_F(ImportTest, UpdatesOnlyWhatDiffers) {
  Json n1 = node("n1", "Unallocated", "manager");
  n1["spec"]["addr"] = "10.0.0.77";
  n1["spec"]["vars"] = Json::parse(R"({"x":{"old":2},"keep":1})");
  known({n1, node("n2", "Allocated", "manager")});
  rest.on("PATCH /v1/nodes/n1", n1);
  rest.on("PATCH /v1/globals", Json::object());
  EXPECT_EQ(run({"inventory", "import", dir}), 0);
  EXPECT_THAT(out(), HasSubstr("n1: updated (addr, vars)\nn2: unchanged\n"));
  EXPECT_EQ(rest.body("PATCH", "/v1/nodes/n1"),
            Json::parse(R"({"spec":{"addr":"10.0.0.1","vars":{"x":{"a":1,"old":null}}}})"));
}

TEST_F(ImportTest, ProblemsFirstAndNothingSent) {
  known({node("n1", "Allocated", "worker"), node("n7")});
  write("service-master: {hosts: {n1: {ansible_host: 10.0.0.1}, n3: {ansible_host: 10.0.0.7}}}");
  EXPECT_EQ(run({"inventory", "import", dir}), 65);
  EXPECT_THAT(err(), HasSubstr("n1: is commissioned; host_group cannot be changed from "
                               "\"service-worker\" to \"service-master\""));
  EXPECT_THAT(err(), HasSubstr("n3: has the address 10.0.0.7 of n7"));
  EXPECT_THAT(err(), HasSubstr("2 of 2 nodes refused"));
  EXPECT_EQ(rest.requests.size(), 3u);
  write("service-master: {hosts: {\"a\\nb\": , n1: {ansible_port: x}}}");
  EXPECT_EQ(run({"inventory", "import", dir}), 65);
  EXPECT_THAT(err(), HasSubstr("a b: \"a b\" is no node name"));
}

TEST_F(ImportTest, ARefusalTakesTheNewNodesBack) {
  rest.on("POST /v1/nodes", node("n1"), 201);
  rest.on_problem("POST /v1/nodes", 409, "duplicate", "the name is taken");
  rest.on("DELETE /v1/nodes/n1", nullptr, 204);
  EXPECT_EQ(run({"inventory", "import", dir}), 65);
  EXPECT_EQ(err(), "error: n2: the name is taken; nothing was imported\n");
  EXPECT_EQ(rest.seen().back(), "DELETE /v1/nodes/n1");
}

TEST_F(ImportTest, DryRunSendsNothing) {
  EXPECT_EQ(run({"inventory", "import", dir, "--dry-run"}), 0);
  EXPECT_THAT(out(), HasSubstr("would be: 2 created"));
  EXPECT_EQ(rest.requests.size(), 3u);
}

TEST_F(ImportTest, HostGroupsComeFromTheDaemonOrTheFlag) {
  write("storage: {hosts: {s1: }}");
  rest.answers["GET /v1/cluster"].clear();
  rest.on("GET /v1/cluster", Json::parse(R"({"host_groups":["storage"]})"));
  rest.on("POST /v1/nodes", node("s1"), 201);
  EXPECT_EQ(run({"inventory", "import", dir}), 0);
  EXPECT_EQ(rest.body("POST", "/v1/nodes")["spec"]["host_group"], "storage");
}

TEST(PatchFor, MakesExactlyTheDifference) {
  const auto p = [](const char* from, const char* to) {
    return patch_for(Json::parse(from), Json::parse(to));
  };
  EXPECT_EQ(p(R"({"a":1})", R"({"a":1})"), Json());
  EXPECT_EQ(p(R"({"a":1})", R"({"a":2,"b":null})"), Json::parse(R"({"a":2})"));
  EXPECT_EQ(p(R"({"a":{"x":1,"y":2}})", R"({"a":{"x":1}})"), Json());
  EXPECT_EQ(p(R"({"vars":{"v":{"x":1,"y":2}}})", R"({"vars":{"v":{"x":1}}})"),
            Json::parse(R"({"vars":{"v":{"y":null}}})"));
  EXPECT_EQ(p(R"({"vars":{"v":5}})", R"({"vars":{"v":{"x":1}}})"),
            Json::parse(R"({"vars":{"v":{"x":1}}})"));
  EXPECT_EQ(p(R"({"vars":{"v":{"x":1}}})", R"({"vars":{"v":[1]}})"),
            Json::parse(R"({"vars":{"v":[1]}})"));
}

}  // namespace
}  // namespace clusterctl::cli
