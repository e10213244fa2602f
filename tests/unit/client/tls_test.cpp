// The client against a server with TLS: whom it trusts, and what it says when it does not.
#include "api/tls.h"

#include <gmock/gmock.h>

#include "api/http_engine.h"
#include "base/time.h"
#include "client/curl_client.h"
#include "client/server_trust.h"
#include "fakes/temp_dir.h"
#include "fakes/test_tls.h"

namespace clusterctl::client {
namespace {

using std::chrono::hours;
using testing::HasSubstr;

class EndlessSource final : public api::StreamSource {
 public:
  api::StreamStep next() override {
    return n_++ == 0 ? api::StreamStep::data(std::string("data: hello\n\n"))
                     : api::StreamStep::end();
  }

 private:
  int n_ = 0;
};

class ClientTlsTest : public testing::Test {
 protected:
  void serve(const TestIdentity& identity) {
    identity_ = identity;
    auto tls = api::TlsServer::make(identity.chain, identity.key);
    ASSERT_TRUE(tls) << tls.error().line();
    engine_ = std::make_unique<api::HttpEngine>(api::EngineOptions(), [this](api::Request& r) {
      ++asked_;
      if (r.target == "/stream") return api::Response::sse(std::make_unique<EndlessSource>());
      return api::Response::json(
          {{"token", std::string(r.headers.get("Authorization").value_or(""))}});
    });
    const auto port = engine_->listen_tcp("127.0.0.1", 0, *tls);
    ASSERT_TRUE(port);
    port_ = *port;
    ASSERT_TRUE(engine_->start());
  }
  void serve_good() { serve(authority_.issue({"localhost", "127.0.0.1"}, hours(-1), hours(100))); }
  void TearDown() override {
    if (engine_) engine_->stop();
  }

  std::unique_ptr<RestClient> client(const std::string& host = "127.0.0.1",
                                     const std::string& scheme = "https") {
    settings_.endpoints = *parse_endpoints(fmt::format("{}://{}:{}", scheme, host, port_));
    settings_.token = "secret-token";
    return make_curl_client(settings_);
  }
  // The Error of a request that must not have reached the server.
  Error refused(const std::string& host = "127.0.0.1") {
    const auto answer = client(host)->send({"GET", "/x", {}, std::nullopt, {}});
    EXPECT_FALSE(answer);
    EXPECT_EQ(asked_, 0);
    if (answer) return {};
    EXPECT_EQ(exit_code(answer.error().code), kExitUnreachable);
    EXPECT_EQ(answer.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(answer.error().message, HasSubstr(fmt::format("https://{}:{}", host, port_)));
    return answer.error();
  }

  TempDir temp_;
  const TestAuthority authority_ = TestAuthority::make();
  TestIdentity identity_;
  std::unique_ptr<api::HttpEngine> engine_;
  std::atomic<int> asked_{0};
  int port_ = 0;
  Settings settings_;
};

TEST_F(ClientTlsTest, AFileOfAuthoritiesOrAPinIsTrusted) {
  serve_good();
  for (const bool pinned : {true, false}) {
    settings_.ca_pin = pinned ? authority_.certificate.fingerprint : "";
    settings_.ca_file = pinned ? fs::path() : temp_.write("ca.crt", authority_.certificate.pem);
    for (const char* host : {"127.0.0.1", "localhost"}) {
      const auto one = client(host);
      for (int i = 0; i < 2; ++i) {
        const auto answer = one->send({"GET", "/x", {}, std::nullopt, {}});
        ASSERT_TRUE(answer) << answer.error().line();
        EXPECT_EQ(answer->json["token"], "Bearer secret-token");
      }
      std::string text;
      const auto streamed = one->stream(
          {"GET", "/stream", {}, std::nullopt, {}},
          [&](std::string_view piece) {
            text += piece;
            return true;
          },
          [] { return true; });
      EXPECT_TRUE(streamed) << streamed.error().line();
      EXPECT_EQ(text, "data: hello\n\n");
    }
  }
}

TEST_F(ClientTlsTest, AnUnknownAuthorityIsShownWithItsFingerprint) {
  serve_good();
  const Error none = refused();
  EXPECT_EQ(none.reason, "untrusted");
  EXPECT_THAT(none.message, HasSubstr(authority_.certificate.fingerprint));
  EXPECT_THAT(none.hint, HasSubstr("--ca-fingerprint"));
  settings_.ca_file = temp_.write("ca.crt", TestAuthority::make().certificate.pem);
  EXPECT_THAT(refused().message, HasSubstr(authority_.certificate.fingerprint));
}

TEST_F(ClientTlsTest, OnlyThePinnedAuthorityWillDo) {
  serve_good();
  // Although it is in the file.
  settings_.ca_file = temp_.write("ca.crt", authority_.certificate.pem);
  settings_.ca_pin = TestAuthority::make().certificate.fingerprint;
  const Error error = refused();
  EXPECT_EQ(error.reason, "untrusted");
  EXPECT_THAT(error.message, HasSubstr("not what is pinned"));
  EXPECT_THAT(error.message, HasSubstr(authority_.certificate.fingerprint));
}

TEST_F(ClientTlsTest, ShowingThePinnedCertificateIsNotEnough) {
  // Somebody in between has the authority's certificate, which is no secret, but not its key.
  const TestIdentity theirs = TestAuthority::make().issue({"127.0.0.1"}, hours(-1), hours(100));
  TestIdentity mixed = theirs;
  mixed.chain = theirs.server.pem + authority_.certificate.pem;
  serve(mixed);
  settings_.ca_pin = authority_.certificate.fingerprint;
  EXPECT_EQ(refused().reason, "untrusted");
}

TEST_F(ClientTlsTest, NamesAndTimesAreCheckedWithAPinToo) {
  for (const bool pinned : {true, false}) {
    asked_ = 0;
    settings_.ca_pin = pinned ? authority_.certificate.fingerprint : "";
    settings_.ca_file = pinned ? fs::path() : temp_.write("ca.crt", authority_.certificate.pem);
    serve(authority_.issue({"a.example", "10.0.0.1"}, hours(-1), hours(100)));
    const Error name = refused();
    EXPECT_EQ(name.reason, "wrong_name");
    EXPECT_THAT(name.message, HasSubstr("is not for 127.0.0.1 but for 10.0.0.1, a.example"));
    serve(authority_.issue({"127.0.0.1"}, hours(-10), hours(-1)));
    EXPECT_EQ(refused().reason, "certificate_expired");
    EXPECT_THAT(refused().message, HasSubstr(format_time(identity_.server.not_after)));
    serve(authority_.issue({"127.0.0.1"}, hours(1), hours(10)));
    EXPECT_EQ(refused().reason, "certificate_not_yet_valid");
  }
}

TEST_F(ClientTlsTest, APlainServerIsNamed) {
  api::HttpEngine plain(api::EngineOptions(),
                        [](api::Request&) { return api::Response::no_content(); });
  const auto port = plain.listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(port);
  ASSERT_TRUE(plain.start());
  port_ = *port;
  const Error error = refused();
  EXPECT_EQ(error.reason, "no_tls");
  plain.stop();
}

TEST_F(ClientTlsTest, WithoutTlsTheServerSaysWhatToDoAndTheTokenStaysHere) {
  serve_good();
  const auto answer = client("127.0.0.1", "http")->send({"GET", "/x", {}, std::nullopt, {}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "tls_required");
  EXPECT_THAT(answer.error().hint, HasSubstr("https://"));
  settings_.endpoints = *parse_endpoints("http://192.0.2.1:9007");
  const auto remote = make_curl_client(settings_)->send({"GET", "/x", {}, std::nullopt, {}});
  ASSERT_FALSE(remote);
  EXPECT_EQ(remote.error().reason, "plain_token");
}

TEST(ServerTrust, FingerprintsAndFilesAreChecked) {
  const std::string pin(64, 'a');
  EXPECT_EQ(*parse_fingerprint(" " + pin + "\n"), pin);
  std::string colons = "AA";
  for (int i = 1; i < 32; ++i) colons += ":AA";
  EXPECT_EQ(*parse_fingerprint(colons), pin);
  for (const std::string& bad :
       {std::string(), pin + "a", pin.substr(1), "sha256:" + pin, std::string(64, 'g')}) {
    EXPECT_EQ(parse_fingerprint(bad).error().reason, "bad_fingerprint") << bad;
  }
  TempDir temp;
  EXPECT_TRUE(check_ca_file(temp.write("ca", test_identity().authority.pem)));
  EXPECT_EQ(check_ca_file(temp.write("key", test_identity().key)).error().reason, "bad_ca_file");
  EXPECT_EQ(check_ca_file(temp.path() / "none").error().reason, "bad_ca_file");
}

}  // namespace
}  // namespace clusterctl::client
