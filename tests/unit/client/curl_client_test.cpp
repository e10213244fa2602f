#include "client/curl_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include "client/sse_reader.h"
#include "tiny_server.h"

namespace clusterctl::client {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string http(int status, std::string_view body, std::string_view type = "application/json",
                 std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      status, type, body.size(), more, body);
}

std::unique_ptr<RestClient> client_for(const std::string& servers, const std::string& token = "") {
  Settings s;
  s.endpoints = *parse_endpoints(servers);
  s.token = token;
  s.max_answer_bytes = 1 << 20;
  s.request_timeout = std::chrono::milliseconds{5000};
  return make_curl_client(std::move(s));
}
std::string url(const TinyServer& s) {
  return fmt::format("http://127.0.0.1:{}", s.port);
}

// A port where nobody listens any more.
int dead_port() {
  return TinyServer([](const auto&) { return ""; }).port;
}

TEST(CurlClient, SendsAndReads) {
  TinyServer server(
      [](const auto&) { return http(200, R"({"a":1})", "application/json", "ETag: \"5\"\r\n"); });
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const auto client = client_for(url(server), "secret");
  Request r{"PATCH",
            "/v1/nodes/" + escape("a b"),
            {{"x", "1"}},
            Json{{"k", "v"}},
            {{"If-Match", "\"4\""}}};
  const auto answer = client->send(r);
  unsetenv("http_proxy");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->json["a"], 1);
  EXPECT_EQ(answer->etag, "\"5\"");
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("PATCH /v1/nodes/a%20b?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("If-Match: \"4\"\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\n{\"k\":\"v\"}"));
}

TEST(CurlClient, UnixSocketNeedsNoToken) {
  char dir[] = "/tmp/clusterctl_client_XXXXXX";
  ASSERT_TRUE(mkdtemp(dir));
  const std::string path = std::string(dir) + "/s";
  {
    TinyServer server([](const auto&) { return http(200, "{}"); }, path);
    EXPECT_TRUE(
        client_for("unix:" + path, "secret")->send({"GET", "/healthz", {}, std::nullopt, {}}));
    EXPECT_THAT(server.requests().at(0), Not(HasSubstr("Authorization")));
  }
  fs::remove_all(dir);
}

TEST(CurlClient, ReadsProblems) {
  TinyServer server([](const auto&) {
    return http(409, R"({"detail":"busy","code":"duplicate","hint":"wait"})",
                "application/problem+json");
  });
  const auto answer = client_for(url(server))->send({"POST", "/v1/jobs", {}, Json::object(), {}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kConflict);
  EXPECT_EQ(answer.error().reason, "duplicate");
  EXPECT_EQ(answer.error().hint, "wait");
}

TEST(CurlClient, NobodyThereIsUnreachable) {
  const auto answer = client_for(fmt::format("http://127.0.0.1:{}", dead_port()))->send({});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "unreachable");
  EXPECT_EQ(exit_code(answer.error().code), kExitUnreachable);
  EXPECT_THAT(answer.error().message, HasSubstr("Connection refused"));
  EXPECT_EQ(client_for("unix:/nonexistent/s")->send({}).error().reason, "unreachable");
}

TEST(CurlClient, TheFirstThatAnswersIsKept) {
  TinyServer server([](const auto&) { return http(200, "{}"); });
  const auto client = client_for(fmt::format("http://127.0.0.1:{},{}", dead_port(), url(server)));
  EXPECT_TRUE(client->send({"GET", "/a", {}, std::nullopt, {}}));
  EXPECT_EQ(client->server(), url(server));
  EXPECT_TRUE(client->send({"GET", "/b", {}, std::nullopt, {}}));
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(CurlClient, EveryServerThatDoesNotAnswerIsNamed) {
  TinyServer silent([](const auto&) { return ""; });
  TinyServer server([](const auto&) { return http(200, "{}"); });
  const auto dead = fmt::format("http://127.0.0.1:{}", dead_port());
  const auto none = client_for(dead + "," + url(silent))->send({"GET", "/", {}, std::nullopt, {}});
  EXPECT_THAT(none.error().message, HasSubstr(dead + ": "));
  EXPECT_THAT(none.error().message, HasSubstr(url(silent) + " closed the connection"));
  // What only reads goes on to the next server, what may have had an effect does not.
  const auto client = client_for(url(silent) + "," + url(server));
  EXPECT_EQ(client->send({"POST", "/", {}, Json::object(), {}}).error().reason, "connection_lost");
  EXPECT_TRUE(client->send({"GET", "/", {}, std::nullopt, {}}));
}

TEST(CurlClient, BrokenAnswers) {
  const auto ask = [](const std::string& raw) {
    TinyServer server([&](const auto&) { return raw; });
    return client_for(url(server))->send({"GET", "/", {}, std::nullopt, {}});
  };
  EXPECT_EQ(ask("").error().reason, "connection_lost");
  EXPECT_EQ(ask("garbage\r\n\r\n").error().code, Code::kUnavailable);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort").error().reason,
            "connection_lost");
  EXPECT_EQ(ask(http(200, "{not json")).error().reason, "bad_answer");
  EXPECT_EQ(ask(http(200, std::string(200000, '['))).error().reason, "bad_answer");
  EXPECT_EQ(ask(http(200, std::string((1 << 20) + 1, ' '))).error().reason, "bad_answer");
  EXPECT_EQ(ask(http(500, "<html>")).error().code, Code::kInternal);
  EXPECT_THAT(ask(http(302, "", "text/html", "Location: http://evil.example/\r\n")).error().message,
              HasSubstr("redirect"));
  EXPECT_THAT(ask(http(401, "{}")).error().hint, HasSubstr("--token-file"));
}

TEST(CurlClient, StreamsWithoutCollecting) {
  TinyServer server([](const std::string& request) {
    if (request.find("/bad") != std::string::npos) return http(404, R"({"detail":"no job"})");
    return http(200, "data: 1\n\ndata: 2\n\n" + std::string(3 << 20, 'x'), "text/event-stream");
  });
  const auto client = client_for(url(server));
  size_t bytes = 0;
  const auto always = [] { return true; };
  ASSERT_TRUE(client->stream(
      {"GET", "/log", {}, std::nullopt, {}},
      [&](std::string_view piece) {
        bytes += piece.size();
        return true;
      },
      always));
  EXPECT_EQ(bytes, (3u << 20) + 18);
  bytes = 0;
  EXPECT_TRUE(client->stream(
      {"GET", "/log", {}, std::nullopt, {}}, [&](auto p) { return (bytes += p.size()) == 0; },
      always));
  EXPECT_LT(bytes, 3u << 20);
  EXPECT_EQ(client
                ->stream(
                    {"GET", "/bad", {}, std::nullopt, {}}, [](auto) { return true; }, always)
                .error()
                .message,
            "no job");
}

TEST(CurlClient, AStreamCanBeLeft) {
  TinyServer server([](const auto&) {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n";
  });
  int asked = 0;
  const auto done = client_for(url(server))
                        ->stream(
                            {"GET", "/", {}, std::nullopt, {}}, [](auto) { return true; },
                            [&] { return ++asked < 1; });
  EXPECT_TRUE(done);
}

TEST(CurlClient, FollowsThroughARestart) {
  int n = 0;
  TinyServer server([&n](const std::string&) -> std::string {
    ++n;
    if (n == 1)
      return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\nid: "
             "r:5\ndata: a\n\n";
    if (n == 2) return "";
    return http(200, "event: end\ndata: {}\n\n", "text/event-stream");
  });
  const auto client = client_for(url(server));
  SystemTimer timer;
  int lost = 0;
  Follow what;
  what.request.path = "/e";
  what.on_message = [](const SseMessage& m) { return m.event != "end"; };
  what.on_lost = [&] { ++lost; };
  EXPECT_TRUE(follow(*client, timer, std::move(what)).value_or(false));
  EXPECT_EQ(lost, 1);
  EXPECT_THAT(server.requests().at(2), HasSubstr("GET /e?since=r%3A5 "));
}

}  // namespace
}  // namespace clusterctl::client
