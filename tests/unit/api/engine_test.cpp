// What a well-behaved client sees.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine_fixture.h"

namespace clusterctl::api {
namespace {

constexpr std::string_view kGet = "GET /x?y=1 HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(EngineTest, AnswersOnBothSocketsAndKeepsTheConnection) {
  start();
  auto client = tcp();
  for (int i = 0; i < 20; ++i) {
    const RawAnswer answer = client.ask(kGet);
    ASSERT_EQ(answer.status, 200);
    EXPECT_EQ(Json::parse(answer.body)["target"], "/x?y=1");
    EXPECT_FALSE(answer.headers.contains("connection")) << answer.headers.at("connection");
  }
  const RawAnswer over_unix = local().ask(kGet);
  EXPECT_EQ(over_unix.status, 200);
  EXPECT_EQ(Json::parse(over_unix.body)["uid"], geteuid());
  EXPECT_EQ(Json::parse(over_unix.body)["peer"], "unix:" + std::to_string(getpid()));
}

TEST_F(EngineTest, ReadsBodiesWithLengthAndInChunks) {
  start();
  auto client = tcp();
  auto answer = client.ask("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(Json::parse(answer.body)["body_size"], 5);
  answer = client.ask(
      "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;name=value\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(Json::parse(answer.body)["body_size"], 13);
  // The limit itself is allowed.
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
  answer = client.ask(std::string(1 << 20, 'a'));
  EXPECT_EQ(Json::parse(answer.body)["body_size"], 1 << 20);
}

TEST_F(EngineTest, ExpectContinueIsAnswered) {
  start();
  auto client = tcp();
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.answer().status, 100);
  EXPECT_EQ(client.ask("{}").status, 200);
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: magic\r\n\r\n");
  EXPECT_EQ(client.answer().status, 417);
}

TEST_F(EngineTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  auto client = local();
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n.";
  }
  client.send(all);
  for (int i = 0; i < 200; ++i) {
    const RawAnswer answer = client.answer();
    ASSERT_EQ(answer.status, 200) << i;
    EXPECT_EQ(Json::parse(answer.body)["target"], "/" + std::to_string(i));
  }
}

TEST_F(EngineTest, HeadHasNoBodyAndNoContentHasNone) {
  start();
  auto client = tcp();
  client.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer head = client.answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_GT(std::stoi(head.headers.at("content-length")), 0);
  const RawAnswer none = client.ask("DELETE /none HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(none.status, 204);
  EXPECT_FALSE(none.headers.contains("content-length"));
  client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.ask(kGet).status, 200);
}

TEST_F(EngineTest, ClosesWhenAsked) {
  start();
  for (const char* request : {"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Close\r\n\r\n",
                              "GET / HTTP/1.0\r\n\r\n"}) {
    auto client = tcp();
    client.send(request);
    EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 200"));
  }
}

TEST_F(EngineTest, CompressesOnlyWithGzip) {
  start();
  auto client = tcp();
  auto answer = client.ask("GET /big HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br, gzip\r\n\r\n");
  EXPECT_EQ(answer.headers["content-encoding"], "gzip");
  answer = client.ask("GET /big HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br\r\n\r\n");
  EXPECT_FALSE(answer.headers.contains("content-encoding"));
  EXPECT_EQ(answer.body.size(), 8u << 20);
}

TEST_F(EngineTest, ASharedBodyIsSentWithoutACopyAndGoesWithItsClients) {
  start();
  auto client = tcp();
  for (const char* more : {"", "Accept-Encoding: gzip\r\n"}) {
    auto answer = client.ask(std::string("GET /shared HTTP/1.1\r\nHost: x\r\n") + more + "\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers["content-type"], "application/json");
    EXPECT_EQ(answer.headers.contains("content-encoding"), *more != 0);
    if (*more == 0) {
      EXPECT_EQ(answer.body, *shared_);
    }
  }
  client.send("HEAD /shared HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.answer(true).headers["content-length"], std::to_string(shared_->size()));
  EXPECT_EQ(client.ask(kGet).status, 200);
  auto old = tcp();
  old.send("GET /shared HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.receive_all().ends_with("s\""));
  std::vector<RawClient> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(tcp());
    slow.back().send("GET /shared HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(slow.back().readable(20'000));
  }
  slow.clear();
  while (shared_.use_count() != 1) std::this_thread::yield();
}

TEST_F(EngineTest, ExceptionsAreNotShown) {
  start();
  auto client = tcp();
  client.send("GET /throw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = client.receive_all();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 500")) << all;
  EXPECT_EQ(all.find("secret"), std::string::npos) << all;
  EXPECT_NE(all.find("application/problem+json"), std::string::npos);
}

TEST_F(EngineTest, ASecondDaemonIsToldThatThePortIsTaken) {
  start();
  HttpEngine second(options_, [](Request&) { return Response::no_content(); });
  const auto port = second.listen_tcp("127.0.0.1", port_);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().message.find("port " + std::to_string(port_) + " is in use"),
            std::string::npos)
      << port.error().message;
  const auto socket_result = second.listen_unix(socket(), "");
  ASSERT_FALSE(socket_result);
  EXPECT_NE(socket_result.error().message.find("another daemon"), std::string::npos);
  EXPECT_TRUE(alive());
}

TEST_F(EngineTest, SocketFileHasItsModeIsReplacedWhenStaleAndRemovedAtTheEnd) {
  {
    // The file of a daemon that was killed.
    const RawClient probe = RawClient::unix_socket(socket());
    Fd old(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket().c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(old.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  start();
  struct stat info {};
  ASSERT_EQ(stat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  EXPECT_EQ(local().ask(kGet).status, 200);
  engine_->stop();
  EXPECT_FALSE(fs::exists(socket()));
}

TEST_F(EngineTest, ListenErrorsAreClear) {
  HttpEngine engine(options_, [](Request&) { return Response::no_content(); });
  ASSERT_TRUE(create_file(dir_ / "plain", "x", 0644));
  EXPECT_FALSE(engine.listen_unix(dir_ / "plain", ""));
  EXPECT_TRUE(fs::exists(dir_ / "plain"));
  EXPECT_FALSE(engine.listen_unix(dir_ / std::string(200, 'x'), ""));
  EXPECT_FALSE(engine.listen_unix(dir_ / "no/such/folder", ""));
  const auto group = engine.listen_unix(dir_ / "t", "no-such-group");
  ASSERT_FALSE(group);
  EXPECT_NE(group.error().line().find("groupadd --system no-such-group"), std::string::npos);
  EXPECT_FALSE(engine.listen_tcp("127.0.0.1", 70000));
  EXPECT_FALSE(engine.listen_tcp("no.such.name.invalid", 0));
  EXPECT_TRUE(engine.listen_unix(dir_ / "t", "root"));
}

TEST_F(EngineTest, StopLetsARunningRequestFinish) {
  start();
  auto client = tcp();
  client.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  while (handled_ == 0) std::this_thread::yield();
  std::thread stopper([this] { engine_->stop(); });
  EXPECT_EQ(client.answer().body.size(), 8u << 20);
  stopper.join();
  EXPECT_FALSE(tcp().connected());
}

TEST_F(EngineTest, TwoHundredConnectionsAtOnce) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(i % 2 == 0 ? tcp() : local());
  for (int round = 0; round < 5; ++round) {
    for (auto& client : clients) ASSERT_TRUE(client.send(kGet));
    for (auto& client : clients) ASSERT_EQ(client.answer().status, 200);
  }
}

}  // namespace
}  // namespace clusterctl::api
