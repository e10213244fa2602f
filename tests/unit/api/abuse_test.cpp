// What hostile and broken clients get, and that they cost nothing.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "engine_fixture.h"
#include "fakes/sanitized.h"

namespace clusterctl::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

size_t resident_kib() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "VmRSS:") {
      size_t kib = 0;
      file >> kib;
      return kib;
    }
  }
  return 0;
}

class AbuseTest : public EngineTest {
 protected:
  // The status of the first answer to these bytes on a connection of their own; it must be a
  // problem document and close.
  int refusal(std::string_view bytes) {
    auto client = tcp();
    client.send(bytes);
    const RawAnswer answer = client.answer();
    if (answer.status == 0) return 0;
    EXPECT_EQ(answer.headers.at("content-type"), "application/problem+json") << bytes.substr(0, 80);
    EXPECT_EQ(answer.headers.at("connection"), "close");
    const Json problem = Json::parse(answer.body);
    EXPECT_EQ(problem["status"], answer.status);
    EXPECT_FALSE(problem["code"].get<std::string>().empty());
    EXPECT_EQ(client.receive_all(), "");
    return answer.status;
  }
  // "CR LF" for each "|".
  static std::string head(std::string text) {
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\r\n") : std::string(1, c);
    return out;
  }
};

TEST_F(AbuseTest, MalformedHeadsAreRefused) {
  start();
  const std::vector<std::string> heads = {
      "GET|Host: x||",
      "GET /|Host: x||",
      "GET  / HTTP/1.1|Host: x||",
      "GET / HTTP/1.1 |Host: x||",
      "GET / HTTP/2.0|Host: x||",
      "GET / HTTP/1.11|Host: x||",
      "GET / http/1.1|Host: x||",
      "PRI * HTTP/2.0||SM||",
      "GET x HTTP/1.1|Host: x||",
      "GET * HTTP/1.1|Host: x||",
      "OPTIONS * HTTP/1.1|Host: x||",
      "GET http://x/ HTTP/1.1|Host: x||",
      "CONNECT x:80 HTTP/1.1|Host: x||",
      "G(T / HTTP/1.1|Host: x||",
      " GET / HTTP/1.1|Host: x||",
      "||GET / HTTP/1.1|Host: x||",
      "GET /\x01 HTTP/1.1|Host: x||",
      "GET /\xc3\xa4 HTTP/1.1|Host: x||",
      "GET /\t HTTP/1.1|Host: x||",
      "GET / HTTP/1.1|Host: x| folded||",
      "GET / HTTP/1.1| Host: x||",
      "GET / HTTP/1.1|Host : x||",
      "GET / HTTP/1.1|Host||",
      "GET / HTTP/1.1|: x||",
      "GET / HTTP/1.1|Ho st: x||",
      "GET / HTTP/1.1|Host: x|A\xff: y||",
      "GET / HTTP/1.1|Host: x|A: b\rc||",
      "GET / HTTP/1.1|Host: x\r|\r|",
      "GET / HTTP/1.1\nHost: x\n\n",
      "GET / HTTP/1.1|Host: x\n\n",
      "GET / HTTP/1.1|Host: x|A: \x7f||",
      "GET / HTTP/1.1||",
      "GET / HTTP/1.1|Host: x|Host: y||",
      "\x16\x03\x01",  // TLS
  };
  for (const auto& text : heads) EXPECT_EQ(refusal(head(text)), 400) << text;
  EXPECT_EQ(refusal(std::string("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 28)), 400);
  EXPECT_EQ(refusal(std::string("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n", 29)), 400);
  EXPECT_EQ(handled_, 0);
  EXPECT_TRUE(alive());
}

TEST_F(AbuseTest, AmbiguousBodiesAreRefused) {
  start();
  const std::string post = "POST / HTTP/1.1|Host: x|";
  const std::vector<std::string> bad = {
      "Content-Length: 4|Transfer-Encoding: chunked||0||",
      "Transfer-Encoding: chunked|Content-Length: 4||0||",
      "Content-Length: 4|Content-Length: 4||abcd",
      "Content-Length: 4|Content-Length: 5||abcde",
      "Content-Length: 4, 4||abcd",
      "Content-Length: -1||",
      "Content-Length: +4||abcd",
      "Content-Length: 0x4||abcd",
      "Content-Length: 4 4||abcd",
      "Content-Length: four||abcd",
      "Content-Length:||",
      "Transfer-Encoding: chunked|Transfer-Encoding: chunked||0||",
      "Transfer-Encoding: gzip, chunked||0||",
      "Transfer-Encoding: chunked, identity||0||",
      "Transfer-Encoding: xchunked||0||",
      "Transfer-Encoding: \x0b"
      "chunked||0||",
      "Transfer-Encoding: chunked||-1|a|0||",
      "Transfer-Encoding: chunked||+1|a|0||",
      "Transfer-Encoding: chunked||0x1|a|0||",
      "Transfer-Encoding: chunked|||",
      "Transfer-Encoding: chunked||1|ab|0||",
      "Transfer-Encoding: chunked||1\na\r\n0||",
      "Transfer-Encoding: chunked||g||",
      "Transfer-Encoding: chunked||1 1|a|0||",
      "Transfer-Encoding: chunked||0|Bad Trailer: x||",
  };
  for (const auto& text : bad) EXPECT_EQ(refusal(head(post + text)), 400) << text;
  EXPECT_EQ(refusal(head("POST / HTTP/1.0|Transfer-Encoding: chunked||0||")), 400);
  EXPECT_EQ(refusal(head(post + "Content-Encoding: gzip|Content-Length: 1||x")), 415);
  EXPECT_EQ(handled_, 0);
}

TEST_F(AbuseTest, EveryDimensionHasALimit) {
  start();
  const std::string big(1 << 20, 'a');
  EXPECT_EQ(refusal("GET /" + big + " HTTP/1.1\r\nHost: x\r\n\r\n"), 414);
  EXPECT_EQ(refusal(big), 414);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\nA: " + big), 431);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\n" + big), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(refusal(many + "\r\n"), 431);
  std::string wide = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 80; ++i) wide += "A: " + std::string(1000, 'b') + "\r\n";
  EXPECT_EQ(refusal(wide + "\r\n"), 431);
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(refusal(post + "Content-Length: 1048577\r\n\r\n"), 413);
  EXPECT_EQ(refusal(post + "Content-Length: 18446744073709551616\r\n\r\n"), 413);
  EXPECT_EQ(refusal(post + "Content-Length: 99999999999999999999999999\r\n\r\n"), 413);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refusal(chunked + "100001\r\n"), 413);
  EXPECT_EQ(refusal(chunked + "ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(refusal(chunked + std::string(300, '0') + "\r\n"), 400);
  EXPECT_EQ(refusal(chunked + "1;" + std::string(300, 'x') + "\r\n"), 400);
  std::string trailers = chunked + "0\r\n";
  for (int i = 0; i < 200; ++i) trailers += "A: b\r\n";
  EXPECT_EQ(refusal(trailers + "\r\n"), 431);
  // Chunks of one byte with long extensions: the framing alone is over the limit.
  std::string padded = chunked;
  for (int i = 0; i < 10'000; ++i) padded += "1;" + std::string(200, 'x') + "\r\na\r\n";
  EXPECT_EQ(refusal(padded), 413);
  EXPECT_EQ(handled_, 0);
  EXPECT_TRUE(alive());
}

TEST_F(AbuseTest, FiftyMegabytesLeaveNoTrace) {
  start();
  const std::string piece(1 << 20, 'z');
  const std::string chunk = "100000\r\n" + piece + "\r\n";
  ASSERT_TRUE(alive());
  const size_t before = resident_kib();
  for (int i = 0; i < 3; ++i) {
    auto sized = tcp();
    sized.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 52428800\r\n\r\n");
    for (int n = 0; n < 50; ++n) sized.send(piece);
    EXPECT_EQ(sized.answer().status, 413);
    auto chunked = local();
    chunked.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int n = 0; n < 50; ++n) chunked.send(chunk);
    EXPECT_EQ(chunked.answer().status, 413);
  }
  if (!fakes::kSanitized) {
    EXPECT_LT(resident_kib(), before + 24'000);
  }
  EXPECT_EQ(handled_, 1);
}

TEST_F(AbuseTest, BufferedBytesOfAllConnectionsAreBounded) {
  options_.max_buffered = 4 << 20;
  start();
  std::vector<RawClient> clients;
  int refused = 0;
  const std::string most((1 << 20) - 1, 'a');
  for (int i = 0; i < 12; ++i) {
    clients.push_back(tcp());
    clients.back().send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + most);
  }
  // At most four fit; eight must be told so, in whatever order.
  for (int tries = 0; refused < 8 && tries < 4000; ++tries) {
    auto& client = clients[static_cast<size_t>(tries) % clients.size()];
    if (client.fd() < 0 || !client.readable(5)) continue;
    refused += client.answer().status == 503;
    client.close();
  }
  EXPECT_GE(refused, 8);
  EXPECT_EQ(handled_, 0);
  clients.clear();
  while (!alive()) std::this_thread::yield();  // until the loop has seen them go
}

TEST_F(AbuseTest, SlowHeadsAndBodiesEndAtTheDeadline) {
  use_fake_time();
  start();
  auto head = tcp();
  auto body = tcp();
  auto silent = tcp();
  head.send("GET / HTTP/1.1\r\nHost:");
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(body.answer().status, 100);
  ASSERT_TRUE(alive());
  advance(seconds(20));
  // One byte now and then does not move the deadline.
  head.send("x");
  body.send("y");
  ASSERT_TRUE(alive());
  EXPECT_FALSE(head.readable(0));
  advance(seconds(11));
  EXPECT_EQ(head.answer().status, 408);
  EXPECT_EQ(body.answer().status, 408);
  EXPECT_FALSE(silent.readable(0));
  advance(seconds(30));
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_TRUE(alive());
}

TEST_F(AbuseTest, IdleConnectionsAreClosed) {
  use_fake_time();
  start();
  auto client = tcp();
  ASSERT_EQ(client.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  advance(seconds(59));
  ASSERT_EQ(client.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  ASSERT_TRUE(alive());
  advance(seconds(61));
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(AbuseTest, ManyHalfOpenConnectionsHoldNobodyUp) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(tcp());
    if (i % 2 == 0)
      clients.back().send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  }
  EXPECT_TRUE(alive());
  EXPECT_EQ(handled_, 1);
}

TEST_F(AbuseTest, BeyondTheCapTheOldestOneGoes) {
  options_.max_connections = 20;
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(tcp());
    clients.back().send("GET / HT");
  }
  EXPECT_TRUE(alive());
  // The other listener has its own room.
  EXPECT_EQ(local().ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  EXPECT_EQ(clients.front().receive_all(), "");
}

TEST_F(AbuseTest, AClientThatDoesNotReadIsDropped) {
  use_fake_time();
  start();
  auto client = tcp();
  client.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(client.readable(20'000));
  ASSERT_TRUE(alive());
  advance(seconds(31));
  ASSERT_TRUE(alive());
  EXPECT_LT(client.receive_all().size(), 8u << 20);
}

TEST_F(AbuseTest, ClientsThatVanishWhileTheirRequestRuns) {
  start();
  for (int i = 0; i < 40; ++i) {
    auto client = i % 2 == 0 ? tcp() : local();
    client.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    if (i % 3 == 0) {
      const linger reset{1, 0};
      setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
  }
  EXPECT_TRUE(alive());
}

TEST_F(AbuseTest, HalfCloseAfterTheRequestStillGetsTheAnswer) {
  start();
  auto client = tcp();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  shutdown(client.fd(), SHUT_WR);
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(client.receive_all(), "");
}

// Pieces of heads, glued and damaged at random: any answer is fine as long as it is a refusal or a
// correct one.
TEST_F(AbuseTest, RandomHeads) {
  start();
  std::mt19937 random(4711);
  const std::vector<std::string> words = {"GET",      "POST",
                                          " ",        "/",
                                          "/x",       "HTTP/1.1",
                                          "\r\n",     "\r",
                                          "\n",       "Host:",
                                          "x",        ":",
                                          "\t",       "%00",
                                          "%",        "?",
                                          "&a=b",     "Content-Length: 3",
                                          "abc",      "0",
                                          "\0",       "\xff",
                                          "chunked",  "Transfer-Encoding: chunked",
                                          "\r\n\r\n", "1\r\na\r\n0\r\n\r\n"};
  for (int i = 0; i < 1500; ++i) {
    std::string text = i % 3 == 0 ? "" : "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int n = static_cast<int>(random() % 12); n >= 0; --n)
      text += words[random() % words.size()];
    for (int n = static_cast<int>(random() % 3); n > 0 && !text.empty(); --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    auto client = i % 2 == 0 ? tcp() : local();
    client.send(text);
    shutdown(client.fd(), SHUT_WR);
    const std::string all = client.receive_all();
    ASSERT_TRUE(all.empty() || all.starts_with("HTTP/1.1 ")) << all;
    ASSERT_EQ(all.find("HTTP/1.1 500"), std::string::npos) << text;
  }
  EXPECT_TRUE(alive());
}

// However the bytes are cut, the outcome is the same.
TEST(RequestReader, PiecesDoNotMatter) {
  const std::string text =
      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: "
      "u\r\n\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n";
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    RequestReader reader{RequestLimits{}};
    std::vector<RawRequest> got;
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::min<size_t>(1 + random() % (1 + round % 40), text.size() - at);
      auto state = reader.feed(std::string_view(text).substr(at, n));
      at += n;
      while (state == RequestReader::State::kReady) {
        got.push_back(reader.take());
        state = reader.feed("");
      }
      ASSERT_EQ(state, RequestReader::State::kMore);
    }
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].body, "abcde");
    EXPECT_EQ(got[0].headers.get("T"), std::nullopt);
    EXPECT_EQ(got[1].target, "/b");
    EXPECT_TRUE(reader.idle());
  }
}

}  // namespace
}  // namespace clusterctl::api
