#include "api/router.h"

#include <gtest/gtest.h>

#include "api/body.h"
#include "api/openapi.h"
#include "api/problem.h"
#include "api/target.h"

namespace clusterctl::api {
namespace {

Handler says(const std::string& name) {
  return [name](const Request& r) -> Result<Response> {
    return Response::json({{"handler", name}, {"params", r.params}, {"query", r.query}});
  };
}

Response ask(const Router& router, const std::string& method, const std::string& target) {
  Request request;
  request.method = method;
  request.target = target;
  if (auto parsed = parse_target(request); !parsed) return problem_response(parsed.error());
  return router.handle(request);
}

std::string header(const Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

Router sample() {
  Router router;
  router.get("/", says("root"));
  router.get("/v1/nodes", says("list"), {"limit", "lifecycle"});
  router.post("/v1/nodes", says("add"));
  router.get("/v1/nodes/{n}", says("get"));
  router.patch("/v1/nodes/{n}", says("patch"));
  router.del("/v1/nodes/{n}", says("delete"));
  router.get("/v1/nodes/special", says("special"));
  router.get("/v1/nodes/special/x", says("special x"));
  router.post("/v1/nodes/{n}/accept", says("accept"));
  router.get("/v1/fail", [](const Request&) -> Result<Response> {
    return fail(Code::kRefused, "placement", "two reasons", "look");
  });
  router.get("/v1/bug", [](const Request&) -> Result<Response> {
    return fail(Code::kInternal, "oops", "a secret path", "a secret hint");
  });
  return router;
}

TEST(Router, FindsHandlersAndParameters) {
  const Router router = sample();
  ASSERT_TRUE(router.mistakes());
  EXPECT_EQ(Json::parse(ask(router, "GET", "/").body)["handler"], "root");
  EXPECT_EQ(Json::parse(ask(router, "GET", "/v1/nodes").body)["handler"], "list");
  const Json got = Json::parse(ask(router, "PATCH", "/v1/nodes/n1.a%20b").body);
  EXPECT_EQ(got["handler"], "patch");
  EXPECT_EQ(got["params"]["n"], "n1.a b");
  EXPECT_EQ(Json::parse(ask(router, "GET", "/v1/nodes/special").body)["handler"], "special");
  // A literal that leads nowhere does not hide the parameter.
  const Json accept = Json::parse(ask(router, "POST", "/v1/nodes/special/accept").body);
  EXPECT_EQ(accept["params"]["n"], "special");
  EXPECT_EQ(Json::parse(ask(router, "HEAD", "/v1/nodes").body)["handler"], "list");
}

TEST(Router, UnknownPathsAre404) {
  const Router router = sample();
  for (const char* path : {"/v1", "/v1/", "/v1/nodes/", "//v1/nodes", "/v1//nodes", "/v2/nodes",
                           "/v1/nodes/a/b", "/v1/nodes/.", "/v1/nodes/..", "/v1/nodes/../nodes",
                           "/v1/nodes/x/accept/", "/V1/nodes", "/v1/nodes/%2e%2e"}) {
    const Response response = ask(router, "GET", path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.content_type, "application/problem+json");
    EXPECT_EQ(Json::parse(response.body)["code"], "no_route");
  }
}

TEST(Router, WrongMethodsAre405WithAllow) {
  const Router router = sample();
  for (const char* method : {"PUT", "BREW", "TRACE", "get", "CONNECT"}) {
    const Response response = ask(router, method, "/v1/nodes/x");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(header(response, "Allow"), "DELETE, GET, HEAD, OPTIONS, PATCH");
  }
  EXPECT_EQ(header(ask(router, "GET", "/v1/nodes/x/accept"), "Allow"), "OPTIONS, POST");
  const Response options = ask(router, "OPTIONS", "/v1/nodes");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(header(options, "Allow"), "GET, HEAD, OPTIONS, POST");
}

TEST(Router, QueryParametersMustBeKnown) {
  const Router router = sample();
  EXPECT_EQ(Json::parse(ask(router, "GET", "/v1/nodes?limit=1+2&lifecycle=").body)["query"],
            (Json{{"limit", "1 2"}, {"lifecycle", ""}}));
  const Json problem = Json::parse(ask(router, "GET", "/v1/nodes?limt=3").body);
  EXPECT_EQ(problem["status"], 400);
  EXPECT_EQ(problem["code"], "unknown_key");
  EXPECT_EQ(problem["hint"], "did you mean \"limit\"?");
  EXPECT_EQ(ask(router, "GET", "/v1/nodes/x?a=b").status, 400);
}

TEST(Router, BadTargetsAre400) {
  const Router router = sample();
  for (const char* target :
       {"/v1/%", "/v1/%4", "/v1/%zz", "/v1/%00", "/v1/a%2Fb", "/v1/a%2fb", "/v1/%ff", "/v1/%c0%af",
        "/v1/%0a", "/v1/%7f", "/v1/nodes?a=1&a=2", "/v1/nodes?=x", "/v1/nodes?a=%00",
        "/v1/nodes?a=%f", "/v1/nodes?%ff=1", "/v1/nodes#x", "x", ""}) {
    EXPECT_EQ(ask(router, "GET", target).status, 400) << target;
  }
  std::string many = "/v1/nodes?";
  for (int i = 0; i < 100; ++i) many += "a" + std::to_string(i) + "=1&";
  EXPECT_EQ(ask(router, "GET", many).status, 400);
  EXPECT_EQ(ask(router, "GET", "/v1/nodes?&&").status, 200);
}

TEST(Router, ErrorsBecomeProblems) {
  const Router router = sample();
  const Response refused = ask(router, "GET", "/v1/fail");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(Json::parse(refused.body), (Json{{"type", "about:blank"},
                                             {"title", "Unprocessable Content"},
                                             {"status", 422},
                                             {"detail", "two reasons"},
                                             {"code", "placement"},
                                             {"hint", "look"}}));
  const Response bug = ask(router, "GET", "/v1/bug");
  EXPECT_EQ(bug.status, 500);
  EXPECT_EQ(bug.body.find("secret"), std::string::npos);
}

TEST(Router, MistakesAreNoticed) {
  const auto mistake = [](const auto& change) {
    Router router = sample();
    change(router);
    return router.mistakes() ? "" : router.mistakes().error().message;
  };
  EXPECT_NE(mistake([](Router& r) { r.get("/v1/nodes", says("x")); }).find("twice"), -1ul);
  EXPECT_NE(mistake([](Router& r) { r.get("/v1/nodes/{id}/x", says("x")); }).find("names"), -1ul);
  EXPECT_NE(mistake([](Router& r) { r.get("v1", says("x")); }).find("slash"), -1ul);
  EXPECT_NE(mistake([](Router& r) { r.get("/v1//x", says("x")); }).find("empty"), -1ul);
}

TEST(Problem, ListsEveryReason) {
  Error error{Code::kConflict, "", "no", "", {{"a", "first", "do", "n1"}, {"b", "second", "", ""}}};
  EXPECT_EQ(problem_json(error, 409),
            (Json{{"type", "about:blank"},
                  {"title", "Conflict"},
                  {"status", 409},
                  {"detail", "no"},
                  {"code", "conflict"},
                  {"problems",
                   {{{"code", "a"}, {"message", "first"}, {"hint", "do"}, {"node", "n1"}},
                    {{"code", "b"}, {"message", "second"}}}}}));
  const Response bad_text = problem_response(Error{Code::kInvalid, "", "\xff\xfe", "", {}});
  EXPECT_TRUE(Json::accept(bad_text.body));
}

Request with_body(const std::string& body, const std::string& type = "application/json",
                  const std::string& method = "POST") {
  Request request;
  request.method = method;
  request.body = body;
  if (!type.empty()) request.headers.add("content-TYPE", type);
  return request;
}

TEST(Body, OnlyJsonObjects) {
  EXPECT_EQ(*json_body(with_body(R"({"a": 1})")), (Json{{"a", 1}}));
  EXPECT_TRUE(json_body(with_body("{}", "Application/JSON; charset=utf-8")));
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const std::string& body :
       {std::string("[]"), std::string("\"a=b\""), std::string("1"), std::string("true"),
        std::string("null"), std::string(R"({"a":1}x)"), std::string(R"({"a":1,"a":2})"),
        std::string("{'a':1}"), std::string("{\"a\":\"\xff\"}"), std::string("{"), deep,
        std::string("{\"a\":1e999}x"), std::string(1 << 20, '['), std::string("\0", 1)}) {
    const auto parsed = json_body(with_body(body));
    ASSERT_FALSE(parsed) << body.substr(0, 20);
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/jsonp", "application/merge-patch+json"}) {
    const auto parsed = json_body(with_body("{}", type));
    ASSERT_FALSE(parsed) << type;
    EXPECT_EQ(parsed.error().code, Code::kMediaType);
  }
  EXPECT_TRUE(json_body(with_body("{}", "application/merge-patch+json", "PATCH")));
}

TEST(Body, BlankOnes) {
  for (const char* body : {"", "  \r\n"}) {
    EXPECT_EQ(*json_body(with_body(body, ""), true), Json::object());
    EXPECT_EQ(json_body(with_body(body)).error().reason, "no_body");
    EXPECT_TRUE(no_body(with_body(body)));
  }
  EXPECT_FALSE(no_body(with_body("{}")));
}

TEST(Body, IfMatch) {
  const auto check = [](const std::string& value) {
    Request request;
    request.headers.add("If-Match", value);
    const auto result = check_if_match(request, 17);
    return result ? "ok" : std::string(code_name(result.error().code));
  };
  EXPECT_TRUE(check_if_match(Request(), 17));
  EXPECT_EQ(etag(17), "\"17\"");
  EXPECT_EQ(check("\"17\""), "ok");
  EXPECT_EQ(check("*"), "ok");
  EXPECT_EQ(check("\"3\", \"17\""), "ok");
  EXPECT_EQ(check("\"16\""), "stale");
  for (const char* bad : {"17", "W/\"17\"", "\"\"", "\"17", "\"17x\"", "\"99999999999999999999\"",
                          "", ",", "\"17\","}) {
    EXPECT_EQ(check(bad), "invalid") << bad;
  }
}

TEST(Body, IdempotencyKey) {
  EXPECT_EQ(*idempotency_key(Request()), std::nullopt);
  const auto key = [](const std::string& value) {
    Request request;
    request.headers.add("idempotency-key", value);
    return idempotency_key(request);
  };
  EXPECT_EQ(**key("abc-1"), "abc-1");
  EXPECT_FALSE(key(""));
  EXPECT_FALSE(key("a b"));
  EXPECT_FALSE(key(std::string(129, 'x')));
  EXPECT_FALSE(key("\xc3\xa4"));
}

TEST(Query, TypedValues) {
  Request request;
  request.query = {{"n", "12"}, {"bad", "1x"}, {"yes", "true"}, {"flag", ""}, {"odd", "yes"}};
  EXPECT_EQ(*request.query_int("n", 0, 1, 100), 12);
  EXPECT_EQ(*request.query_int("none", 7, 1, 100), 7);
  EXPECT_FALSE(request.query_int("n", 0, 13, 100));
  EXPECT_FALSE(request.query_int("bad", 0, 1, 100));
  EXPECT_TRUE(*request.query_bool("yes"));
  EXPECT_TRUE(*request.query_bool("flag"));
  EXPECT_FALSE(*request.query_bool("none"));
  EXPECT_FALSE(request.query_bool("odd"));
}

TEST(OpenApi, DocumentIsSound) {
  const auto document = parse_json(kOpenapiText, "openapi.json");
  ASSERT_TRUE(document) << document.error().line();
  EXPECT_EQ(document_faults(*document), std::vector<std::string>());
}

TEST(OpenApi, DifferencesAreFound) {
  const Json document = Json::parse(R"({"paths": {
    "/a/{n}": {"parameters": [{"$ref": "#/components/parameters/n"}],
               "get": {"parameters": [{"name": "limit", "in": "query"}]}},
    "/gone": {"get": {}}},
    "components": {"parameters": {"n": {"name": "n", "in": "path"}}}})");
  EXPECT_EQ(compare_with_document({{"GET", "/a/{n}", {"limit"}}, {"GET", "/gone", {}}}, document),
            std::vector<std::string>());
  EXPECT_EQ(compare_with_document({{"GET", "/a/{n}", {"after"}}, {"PUT", "/a/{n}", {}}}, document),
            (std::vector<std::string>{"GET /a/{n}: the query parameter after is not described",
                                      "GET /a/{n}: the query parameter limit does not exist",
                                      "PUT /a/{n} is not described",
                                      "GET /gone is described but does not exist"}));
}

}  // namespace
}  // namespace clusterctl::api
