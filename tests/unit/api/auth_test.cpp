#include "api/auth.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "api/openapi.h"
#include "api/service.h"
#include "base/digest.h"
#include "engine_fixture.h"
#include "fakes/fake_clock.h"

namespace clusterctl::api {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

class AuthTest : public testing::Test {
 protected:
  AuthTest() {
    options_.token = kToken;
    options_.hosts = {"Controller.example", "10.1.2.3", "fd00::1"};
  }

  static Request tcp(std::vector<std::pair<std::string, std::string>> headers,
                     const std::string& target = "/v1/nodes") {
    Request request;
    request.method = "GET";
    request.target = target;
    request.peer.transport = Transport::kTcp;
    for (auto& [name, value] : headers) request.headers.add(name, value);
    return request;
  }
  static Request local(uid_t uid, gid_t gid = 5000, std::vector<gid_t> groups = {}) {
    Request request;
    request.peer = {Transport::kUnix, "unix:1", uid, gid, 1, std::move(groups)};
    return request;
  }
  // "ok: <identity>" or "<code>: <reason>".
  std::string check(const Request& request) const {
    const auto result = Auth(options_).check(request);
    if (result) return "ok: " + result->name;
    return std::string(code_name(result.error().code)) + ": " + result.error().reason;
  }

  AuthOptions options_;
  const std::pair<std::string, std::string> good_{"Authorization", std::string("Bearer ") + kToken};
};

TEST_F(AuthTest, UnixSocketByCredentials) {
  options_.group = 77;
  EXPECT_EQ(check(local(0)), "ok: uid:0");
  EXPECT_EQ(check(local(geteuid())), "ok: uid:" + std::to_string(geteuid()));
  EXPECT_EQ(check(local(1234)), "forbidden: not_allowed");
  EXPECT_EQ(check(local(1234, 77)), "ok: uid:1234");
  EXPECT_EQ(check(local(1234, 5, {1, 77})), "ok: uid:1234");
  EXPECT_EQ(check(local(static_cast<uid_t>(-1), 77)), "forbidden: not_allowed");
  options_.group.reset();
  EXPECT_EQ(check(local(1234, 0, {0})), "forbidden: not_allowed");
}

TEST_F(AuthTest, TcpNeedsTheToken) {
  const std::pair<std::string, std::string> host{"Host", "localhost:9007"};
  EXPECT_EQ(check(tcp({host, good_})), "ok: token");
  EXPECT_EQ(check(tcp({host, {"authorization", std::string("bEARER  ") + kToken}})), "ok: token");
  EXPECT_EQ(check(tcp({host})), "unauthenticated: no_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", "Basic abc"}})), "unauthenticated: no_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", kToken}})), "unauthenticated: no_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", "Bearer"}})), "unauthenticated: no_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", "Bearer "}})), "unauthenticated: wrong_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", "Bearer x"}})), "unauthenticated: wrong_token");
  EXPECT_EQ(check(tcp({host, {"Authorization", std::string("Bearer ") + kToken + "0"}})),
            "unauthenticated: wrong_token");
  EXPECT_EQ(check(tcp({host, good_, good_})), "unauthenticated: no_token");
  EXPECT_EQ(check(tcp({host}, "/healthz?x")), "ok: anonymous");
  EXPECT_EQ(check(tcp({host}, "/healthz/../v1/nodes")), "unauthenticated: no_token");
  options_.token.clear();
  EXPECT_EQ(check(tcp({host, {"Authorization", "Bearer "}})), "unauthenticated: wrong_token");
}

TEST_F(AuthTest, OnlyOurNamesInHost) {
  for (const char* ours : {"localhost", "LOCALHOST:1", "127.0.0.1:9007", "[::1]:9007", "[::1]",
                           "controller.example:80", "10.1.2.3", "[fd00::1]:9007"}) {
    EXPECT_EQ(check(tcp({{"Host", ours}, good_})), "ok: token") << ours;
  }
  for (const char* other : {"evil.example", "localhost.evil.example", "evil.example:127.0.0.1", "",
                            "[::1", "::1", "127.0.0.2", " "}) {
    EXPECT_EQ(check(tcp({{"Host", other}, good_})), "forbidden: unknown_host") << other;
  }
  EXPECT_EQ(check(tcp({good_})), "forbidden: unknown_host");
  EXPECT_EQ(check(tcp({{"Host", "evil.example"}}, "/healthz")), "forbidden: unknown_host");
}

TEST_F(AuthTest, TheAddressThatWasReachedIsOurs) {
  Request request = tcp({{"Host", "10.7.7.7:9007"}, good_});
  EXPECT_EQ(check(request), "forbidden: unknown_host");
  request.peer.local = "10.7.7.7";
  EXPECT_EQ(check(request), "ok: token");
  Request v6 = tcp({{"Host", "[FD00::7]"}, good_});
  v6.peer.local = "[fd00::7]";
  EXPECT_EQ(check(v6), "ok: token");
  v6.peer.local = "";
  EXPECT_EQ(check(v6), "forbidden: unknown_host");
}

TEST_F(AuthTest, NamedTokens) {
  FakeClock clock;
  const std::string text = access::api_token_text("abcdefgh2345", std::string(40, 'a'));
  access::ApiToken token;
  token.id = "abcdefgh2345";
  token.name = "ci";
  token.digest = sha256_hex(text);
  std::optional<access::ApiToken> known = token;
  std::string asked;
  options_.clock = &clock;
  options_.find_token = [&](const std::string& id) {
    asked = id;
    return known;
  };
  const auto with = [](const std::string& given, const char* method = "GET") {
    Request request = tcp({{"Host", "localhost"}, {"Authorization", "Bearer " + given}});
    request.method = method;
    return request;
  };
  EXPECT_EQ(check(with(text)), "ok: token:ci");
  EXPECT_EQ(asked, token.id);
  EXPECT_TRUE(Auth(options_).check(with(text))->named_token);
  EXPECT_FALSE(Auth(options_).check(with(kToken))->named_token);
  EXPECT_EQ(check(with(text, "DELETE")), "ok: token:ci");
  const std::string other = access::api_token_text(token.id, std::string(40, 'b'));
  EXPECT_EQ(check(with(other)), "unauthenticated: wrong_token");
  EXPECT_EQ(check(with(text + "a")), "unauthenticated: wrong_token");

  known->read_only = true;
  EXPECT_EQ(check(with(text)), "ok: token:ci");
  EXPECT_EQ(check(with(text, "HEAD")), "ok: token:ci");
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", ""}) {
    EXPECT_EQ(check(with(text, method)), "forbidden: read_only") << method;
  }
  known->expires = clock.now() + std::chrono::milliseconds(1);
  EXPECT_EQ(check(with(text)), "ok: token:ci");
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(check(with(text)), "unauthenticated: token_expired");
  EXPECT_EQ(check(with(other)), "unauthenticated: wrong_token");
  known.reset();
  EXPECT_EQ(check(with(text)), "unauthenticated: wrong_token");
  options_.find_token = nullptr;
  EXPECT_EQ(check(with(text)), "unauthenticated: wrong_token");
}

TEST_F(AuthTest, PagesOfOtherSitesAreRefused) {
  const std::pair<std::string, std::string> host{"Host", "localhost:9007"};
  EXPECT_EQ(check(tcp({host, good_, {"Origin", "http://localhost:9007"}})), "ok: token");
  EXPECT_EQ(check(tcp({host, good_, {"Sec-Fetch-Site", "same-origin"}})), "ok: token");
  for (const char* origin : {"https://evil.example", "null", "", "http://localhost:1",
                             "localhost:9007", "http://localhost:9007.evil.example"}) {
    EXPECT_EQ(check(tcp({host, good_, {"Origin", origin}})), "forbidden: cross_site") << origin;
  }
  EXPECT_EQ(check(tcp({host, good_, {"Sec-Fetch-Site", "cross-site"}})), "forbidden: cross_site");
  EXPECT_EQ(check(tcp({{"Host", "evil.example"}, good_, {"Origin", "http://evil.example"}})),
            "forbidden: cross_site");
}

TEST(TokenFile, IsMadeOnceAndChecked) {
  char name[] = "/tmp/clusterctl-token-XXXXXX";
  const fs::path dir = mkdtemp(name);
  const fs::path file = dir / "token";
  const auto made = load_or_create_token(file);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(made->size(), 64u);
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(*load_or_create_token(file), *made);
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(load_or_create_token(file).error().reason, "unsafe_token_file");
  fs::remove(file);
  for (const char* bad : {"", "short\n", "0123456789abcdef 0123456789abcdef"}) {
    ASSERT_TRUE(create_file(file, bad, 0600));
    EXPECT_EQ(load_or_create_token(file).error().reason, "bad_token_file") << bad;
    fs::remove(file);
  }
  fs::create_symlink("/etc/passwd", file);
  EXPECT_FALSE(load_or_create_token(file));
  EXPECT_FALSE(load_or_create_token(dir / "no/token"));
  fs::remove_all(dir);
}

// Everything together: sockets, engine, authentication, routes.
class ServiceTest : public EngineTest {
 protected:
  ServiceTest() : auth_({kToken, {}, std::nullopt, {"/healthz"}}), service_(router_, auth_) {
    add_openapi_route(router_);
    router_.get("/healthz",
                [](const Request&) -> Result<Response> { return Response::text("ok\n"); });
    router_.get("/v1/who", [](const Request& r) -> Result<Response> {
      return Response::json({{"name", r.identity.name}});
    });
  }
  Response handle(Request& request) override { return service_.handle(request); }

  Router router_;
  Auth auth_;
  Service service_;
};

TEST_F(ServiceTest, FromSocketToHandler) {
  start();
  const std::string token = std::string("Authorization: Bearer ") + kToken + "\r\n";
  auto answer = local().ask("GET /v1/who HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(Json::parse(answer.body)["name"], "uid:" + std::to_string(geteuid()));
  EXPECT_EQ(answer.headers["cache-control"], "no-store");
  EXPECT_FALSE(answer.headers["x-request-id"].empty());
  auto client = tcp();
  answer = client.ask("GET /v1/who HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n");
  EXPECT_EQ(Json::parse(answer.body)["name"], "token");
  answer = client.ask("GET /v1/who HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.headers["www-authenticate"], "Bearer realm=\"clusterctl\"");
  EXPECT_EQ(client.ask("GET /v1/who HTTP/1.1\r\nHost: evil\r\n" + token + "\r\n").status, 403);
  EXPECT_EQ(client.ask("GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
  EXPECT_EQ(client.ask("GET /no HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n").status, 404);
  answer = client.ask("BREW /v1/who HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.headers["allow"], "GET, HEAD, OPTIONS");
  EXPECT_EQ(client.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").body, "ok\n");
  answer = client.ask("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n");
  EXPECT_EQ(answer.body, kOpenapiText);
  EXPECT_EQ(client.ask("GET /%zz HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n").status, 400);
}

}  // namespace
}  // namespace clusterctl::api
