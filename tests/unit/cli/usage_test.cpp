#include "cli_fixture.h"

namespace clusterctl::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CliTest, HelpEverywhere) {
  for (const std::vector<std::string>& path : {std::vector<std::string>{},
                                               {"node"},
                                               {"node", "ls"},
                                               {"node", "add"},
                                               {"node", "commission"},
                                               {"job", "logs"},
                                               {"global", "set"},
                                               {"inventory"},
                                               {"inventory", "import"},
                                               {"status"},
                                               {"events"},
                                               {"version"},
                                               {"completion"}}) {
    auto args = path;
    args.push_back("--help");
    EXPECT_EQ(run(args), 0);
    EXPECT_THAT(out(), HasSubstr("Usage: clusterctl"));
    EXPECT_THAT(err(), IsEmpty());
  }
  EXPECT_THAT(rest.requests, IsEmpty());
}

TEST_F(CliTest, UnknownWordsAreUsageWithTheNearest) {
  EXPECT_EQ(run({"nod", "ls"}), 64);
  EXPECT_EQ(
      err(),
      "error: clusterctl does not know \"nod\"\nhint: did you mean node? See clusterctl --help\n");
  EXPECT_EQ(run({"node", "comission", "n1"}), 64);
  EXPECT_EQ(err(),
            "error: clusterctl node does not know \"comission\"\nhint: did you mean commission? "
            "See clusterctl node --help\n");
  EXPECT_EQ(run({"node", "ls", "--fliter=x=y"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean --filter?"));
  EXPECT_EQ(run({"node", "ls", "-o", "jsno"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean json?"));
  EXPECT_EQ(run({"node", "ls", "--filter", "stauts=x"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean status?"));
  EXPECT_EQ(run({"node", "ls", "--filter", "status=Alocated"}), 64);
  EXPECT_EQ(run({"node", "commission", "--host-group=", "n1"}), 64);
  EXPECT_EQ(err(), "error: --host-group needs a value\n");
  EXPECT_EQ(run({}), 64);
  EXPECT_EQ(run({"node"}), 64);
  EXPECT_THAT(err(), HasSubstr("needs a command: ls, inspect"));
  EXPECT_EQ(run({"node", "add", "n1"}), 64);
  EXPECT_EQ(err(), "error: --addr is required\nhint: clusterctl node add --help\n");
  EXPECT_EQ(run({"job", "ls", "--limit", "x"}), 64);
  EXPECT_EQ(run({"--server", "ftp://x", "status"}), 64);
  EXPECT_THAT(rest.requests, IsEmpty());
}

TEST_F(CliTest, ServerAndTokenFromFlagsOrEnvironment) {
  rest.on("GET /v1/status", Json::object());
  env["CLUSTERCTL_SERVER"] = "unix:/a";
  run({"status"});
  EXPECT_EQ(settings.endpoints.at(0).socket, "/a");
  run({"status", "--server", "http://127.0.0.1:1,unix:/b"});
  EXPECT_EQ(settings.endpoints.size(), 2u);
  run({"status", "--server", "unix:/a", "--server", "unix:/b,unix:/c", "--request-timeout", "7"});
  EXPECT_EQ(settings.endpoints.size(), 3u);
  EXPECT_EQ(settings.request_timeout, std::chrono::seconds(7));
  EXPECT_EQ(run({"status", "--server", "unix:/a", "--context", "b"}), 64);
  env["CLUSTERCTL_TOKEN_FILE"] = "/nonexistent";
  EXPECT_EQ(run({"status"}), 77);
}

TEST_F(CliTest, RefusalsGroupProblemsByNode) {
  rest.on_problem(
      "POST /v1/jobs", 422, "placement", "the placement rules refuse this", "see docs",
      Json::parse(R"([{"code":"b","message":"no UCP\nfor DTR","hint":"commission UCP","node":"n2"},
                                  {"code":"a","message":"too small","node":"n1"},{"code":"c","message":"busy","node":"n2"},
                                  {"code":"vip","message":"no service_vip","node":""}])"));
  EXPECT_EQ(run({"node", "commission", "n1", "n2", "n3"}), 65);
  EXPECT_EQ(err(), R"(error: the placement rules refuse this
  no service_vip [vip]
  n1: too small [a]
  n2: no UCP for DTR [b]
      hint: commission UCP
  n2: busy [c]
2 of 3 nodes refused
hint: see docs
)");
}

TEST_F(CliTest, ExitCodesFollowTheKindOfTrouble) {
  for (const auto& [status, code] : {std::pair{400, 64},
                                     {401, 77},
                                     {403, 77},
                                     {404, 65},
                                     {409, 65},
                                     {412, 65},
                                     {422, 65},
                                     {429, 65},
                                     {500, 70},
                                     {503, 69}}) {
    rest.answers.clear();
    rest.on_problem("GET /v1/status", status, "x", "words");
    EXPECT_EQ(run({"status"}), code) << status;
    EXPECT_EQ(err(), "error: words\n");
  }
  rest.answers.clear();
  rest.on_lost("GET /v1/status", "unreachable");
  EXPECT_EQ(run({"status"}), 69);
  rest.answers.clear();
  rest.on("GET /v1/status", Json::array());
  EXPECT_EQ(run({"status"}), 70);
}

TEST_F(CliTest, ColourOnlyOnATerminalThatWantsIt) {
  rest.on_problem("GET /v1/status", 404, "x", "words");
  terminal.redraw = true;
  run({"status"});
  EXPECT_THAT(err(), HasSubstr("\x1b[31m"));
  env["NO_COLOR"] = "1";
  run({"status"});
  EXPECT_EQ(err(), "error: words\n");
}

TEST_F(CliTest, AnswersOfAnyShapeDoNotCrash) {
  const std::vector<std::vector<std::string>> commands{{"node", "ls", "-o", "wide"},
                                                       {"node", "inspect", "n1"},
                                                       {"job", "ls"},
                                                       {"job", "inspect", "x"},
                                                       {"job", "wait", "x"},
                                                       {"events"},
                                                       {"status"},
                                                       {"version"},
                                                       {"global", "get"},
                                                       {"inventory", "--list"},
                                                       {"inventory", "--host", "x"},
                                                       {"inventory", "export"},
                                                       {"node", "commission", "n1", "--plan"},
                                                       {"node", "commission", "n1"},
                                                       {"node", "check"},
                                                       {"node", "label", "n1", "a=b"}};
  const char* shapes[] = {
      "{}",
      R"({"nodes":5,"jobs":"x","events":{"a":1},"vars":[1],"services":7,"plan":[],"spec":1,"status":"x"})",
      R"({"nodes":[1,null,{"spec":[],"status":{"services":{"a":1,"swarm":{"members":[1,{"leader":true}]}},"conditions":"x"}}],
                              "jobs":[[],{"nodes":{"a":1}}],"events":[0],"vars":{"a":null},"services":{"x":[1]},"vip":[],"problems":[1,{}],
                              "plan":{"stages":[1,{"nodes":[1],"services":5}],"quorum":{"a":5},"warnings":[[]]},"state":"succeeded","id":7})"};
  for (const auto& command : commands) {
    for (const char* shape : shapes) {
      rest.answers.clear();
      for (const char* path :
           {"GET /v1/nodes", "GET /v1/nodes/n1", "GET /v1/jobs", "GET /v1/jobs/x", "GET /v1/jobs/",
            "GET /v1/jobs/7", "GET /v1/events", "GET /v1/status", "GET /v1/version",
            "GET /v1/globals", "GET /v1/inventory", "POST /v1/jobs", "PATCH /v1/nodes/n1"}) {
        rest.on(path, Json::parse(shape));
      }
      run(command);
      auto yaml = command;
      yaml.insert(yaml.end(), {"-o", "yaml"});
      run(yaml);
    }
  }
}

}  // namespace
}  // namespace clusterctl::cli
