// What is special about TLS: handshakes that do not end, other versions, renegotiation, records
// without content, ends that are none. Everything else is tested by running the engine's own tests
// over TLS (CLUSTERCTL_TEST_TLS, tests/unit/CMakeLists.txt).
#include "api/tls.h"

#include <gmock/gmock.h>

#include <thread>

#include "api/certificate_keeper.h"
#include "base/process.h"
#include "engine_fixture.h"
#include "fakes/fake_clock.h"
#include "fakes/test_tls.h"

namespace clusterctl::api {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kPing = "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr const char* kFollowOverTls = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";

class TlsTest : public EngineTest {
 protected:
  TlsTest() { always_tls_ = true; }
  RawClient tls(TestTlsOptions options = {}) const { return RawClient::tls(port_, options); }
  RawClient raw() const { return RawClient::plain(port_); }
  bool local_alive() const { return local().ask(kPing).status == 200; }
  // What a client says first.
  static std::string client_hello() {
    const TestSsl ssl = test_tls_client(-1);
    BIO* in = BIO_new(BIO_s_mem());
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), in, out);
    SSL_connect(ssl.get());
    ERR_clear_error();
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    return std::string(data, static_cast<size_t>(size));
  }
  static size_t threads() {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/task")) ++n;
    return n;
  }
};

TEST_F(TlsTest, BothVersionsAreSpoken) {
  start();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto client = tls({version, version});
    ASSERT_TRUE(client.established());
    EXPECT_EQ(SSL_version(client.ssl()), version);
    EXPECT_EQ(client.ask(kPing).status, 200);
    EXPECT_EQ(client.ask(kPing).status, 200);
    const auto big = client.ask("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(big.body, std::string(8 << 20, 'b'));
    const std::string body(1 << 20, 'u');
    const auto upload =
        client.ask("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + body);
    EXPECT_THAT(upload.body, HasSubstr("\"body_size\":1048576"));
    EXPECT_FALSE(SSL_session_reused(client.ssl()));
  }
}

TEST_F(TlsTest, OldVersionsAreRefused) {
  start();
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    EXPECT_FALSE(tls({version, version}).established());
  }
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, APlainRequestIsToldInOneLine) {
  start();
  for (const char* request :
       {kPing, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "G"}) {
    auto client = raw();
    const auto answer = client.ask(request);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("\"code\":\"tls_required\""));
    EXPECT_THAT(answer.body, HasSubstr("https://"));
    EXPECT_EQ(client.receive_all(), "");
  }
  EXPECT_EQ(handled_, 0);
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, GarbageEndsTheConnectionAndNothingElse) {
  start();
  const std::string hello = client_hello();
  std::vector<std::string> garbage{std::string(1, '\0'),
                                   std::string("\x80\x2e\x01\x00\x02", 5),
                                   std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, 'x'),
                                   std::string("\x16\x03\x01\x00\x05", 5) + "hello",
                                   std::string("\x15\x03\x01\x00\x02\x02\x28", 7),
                                   std::string("\x17\x03\x03\x00\x05", 5) + "hello",
                                   hello + hello};
  for (size_t at = 0; at < hello.size(); at += 7) {
    std::string bent = hello;
    bent[at] = static_cast<char>(bent[at] ^ 0x55);
    // A handshake that could still become one has to be cut off by the client.
    garbage.push_back(std::move(bent));
  }
  for (const std::string& bytes : garbage) {
    auto client = raw();
    client.send(bytes);
    shutdown(client.fd(), SHUT_WR);
    client.receive_all();
  }
  EXPECT_EQ(handled_, 0);
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, HandshakesHaveAsLongAsARequest) {
  use_fake_time();
  start();
  const std::string hello = client_hello();
  auto silent = raw();
  auto half = raw();
  half.send(hello.substr(0, 40));
  auto no_end = raw();
  no_end.send(hello);
  ASSERT_TRUE(no_end.readable(20'000));  // the server's part has come, the client's never will
  auto begun = tls();                    // and says nothing more
  ASSERT_TRUE(begun.established());
  auto request = tls();
  request.send("GET /ping HT");
  ASSERT_TRUE(alive());
  advance(options_.request_timeout + std::chrono::milliseconds(1));
  half.receive_all();
  no_end.receive_all();
  EXPECT_EQ(request.answer().status, 408);
  EXPECT_EQ(begun.ask(kPing).status, 200);
  advance(options_.idle_timeout + std::chrono::milliseconds(1));
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_EQ(begun.receive_all(), "");
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, ByteByByteWorksToo) {
  start();
  auto client = raw();
  const TestSsl ssl = test_tls_client(-1);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_connect_state(ssl.get());
  const auto pump = [&] {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    const std::string text(data, static_cast<size_t>(size));
    (void)BIO_reset(out);
    for (const char byte : text) ASSERT_TRUE(client.send({&byte, 1}));
  };
  while (SSL_do_handshake(ssl.get()) != 1) {
    pump();
    ASSERT_TRUE(client.receive());
    BIO_write(in, client.buffer().data(), static_cast<int>(client.buffer().size()));
    client.buffer().clear();
  }
  SSL_write(ssl.get(), kPing, static_cast<int>(std::strlen(kPing)));
  pump();
  std::string answer(4096, '\0');
  int n = 0;
  while ((n = SSL_read(ssl.get(), answer.data(), 4096)) <= 0) {
    ASSERT_TRUE(client.receive());
    BIO_write(in, client.buffer().data(), static_cast<int>(client.buffer().size()));
    client.buffer().clear();
  }
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
}

TEST_F(TlsTest, NobodyRenegotiates) {
  start();
  auto client = tls({TLS1_2_VERSION, TLS1_2_VERSION});
  ASSERT_TRUE(client.established());
  ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
  EXPECT_EQ(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
  ERR_clear_error();
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, RecordsWithoutContentKeepNobodyWaiting) {
  use_fake_time();
  start();
  auto follower = tls({TLS1_3_VERSION, TLS1_3_VERSION});
  follower.send(kFollowOverTls);
  ASSERT_TRUE(follower.receive_until("\r\n\r\n"));
  auto idle = tls({TLS1_3_VERSION, TLS1_3_VERSION});
  // Key updates that ask for an answer which is never read: until the server has had enough, or
  // takes no more.
  for (RawClient* client : {&follower, &idle}) {
    const timeval limit{0, 200'000};
    setsockopt(client->fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    for (int i = 0; i < 20'000; ++i) {
      if (SSL_key_update(client->ssl(), SSL_KEY_UPDATE_REQUESTED) != 1 ||
          SSL_do_handshake(client->ssl()) != 1) {
        break;
      }
    }
    ERR_clear_error();
    EXPECT_TRUE(alive());
  }
  EXPECT_TRUE(feed_->wait_alive(0));  // a follower that talks that much is gone
  advance(options_.idle_timeout + std::chrono::milliseconds(1));
  idle.receive_all();
  EXPECT_TRUE(alive());
}

TEST_F(TlsTest, AnEndIsToldFromABreak) {
  start();
  auto ended = tls();
  ended.send(kFollowOverTls);
  ASSERT_TRUE(ended.receive_until("\r\n\r\n"));
  feed_->push("data: last\n\n", true);
  EXPECT_THAT(ended.receive_all(), HasSubstr("data: last"));
  EXPECT_TRUE(ended.ended_in_order());

  feed_ = std::make_shared<Feed>();
  auto broken = tls();
  broken.send(kFollowOverTls);
  ASSERT_TRUE(broken.receive_until("\r\n\r\n"));
  engine_->stop();
  broken.receive_all();
  EXPECT_FALSE(broken.ended_in_order());
}

TEST_F(TlsTest, AThousandFollowersAndAsManyParkedWithFewThreads) {
  if (raise_descriptor_limit(4096) < 4096) GTEST_SKIP() << "not enough file descriptors";
  options_.max_connections = options_.max_streams = 2000;
  start();
  std::vector<RawClient> followers, parked;
  for (int i = 0; i < 1000; ++i) {
    followers.push_back(tls());
    ASSERT_TRUE(followers.back().established()) << i;
    followers.back().send(kFollowOverTls);
  }
  for (int i = 0; i < 200; ++i) parked.push_back(tls());
  for (RawClient& client : followers) ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_EQ(engine_->streams(), 1000u);
  EXPECT_LT(threads(), 20u);
  feed_->push("data: hello\n\n");
  for (RawClient& client : followers) ASSERT_TRUE(client.receive_until("data: hello\n\n"));
  EXPECT_EQ(parked.front().ask(kPing).status, 200);
  EXPECT_TRUE(local_alive());
}

TEST_F(TlsTest, ANewCertificateIsForNewConnections) {
  start();
  const auto shown = [](const RawClient& client) {
    X509* x = SSL_get1_peer_certificate(client.ssl());
    const std::string serial(reinterpret_cast<const char*>(X509_get0_serialNumber(x)->data), 16);
    X509_free(x);
    return serial;
  };
  auto before = tls();
  const TestIdentity fresh =
      TestAuthority::make().issue({"localhost"}, std::chrono::hours(-1), std::chrono::hours(1));
  EXPECT_FALSE(tls_->replace(fresh.chain, test_identity().key));
  EXPECT_FALSE(tls_->replace("", fresh.key));
  EXPECT_EQ(shown(tls()), shown(before));
  ASSERT_TRUE(tls_->replace(fresh.chain, fresh.key));
  EXPECT_NE(shown(tls()), shown(before));
  EXPECT_EQ(before.ask(kPing).status, 200);
}

TEST(CertificateKeeper, GivesWhatIsNewAndKeepsTheOldOneInTrouble) {
  FakeClock clock;
  const TestAuthority authority = TestAuthority::make();
  const auto identity = [&] {
    const TestIdentity made = authority.issue({"a"}, std::chrono::hours(-1), std::chrono::hours(1));
    return access::ServerIdentity{made.chain, made.key, "", {}, {}};
  };
  Result<access::ServerIdentity> next = identity();
  int asked = 0;
  CertificateKeeper keeper(
      [&](Time now) {
        EXPECT_EQ(now, clock.now());
        ++asked;
        return next;
      },
      clock);
  ASSERT_TRUE(keeper.open());
  const std::string first = keeper.current().chain;
  keeper.look();
  EXPECT_EQ(keeper.current().chain, first);
  next = fail(Code::kInvalid, "expired", "it has expired");
  keeper.look();
  EXPECT_EQ(keeper.current().chain, first);
  next = identity();
  next->key = test_identity().key;
  keeper.look();
  EXPECT_EQ(keeper.current().chain, first);
  next = identity();
  keeper.look();
  EXPECT_EQ(keeper.current().chain, next->chain);
  EXPECT_EQ(asked, 5);
  keeper.start();
  keeper.stop();
}

}  // namespace
}  // namespace clusterctl::api
