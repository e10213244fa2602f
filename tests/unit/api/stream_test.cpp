// Endless answers over the real engine.
#include <gtest/gtest.h>

#include <thread>

#include "engine_fixture.h"

namespace clusterctl::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kFollow = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";

class StreamTest : public EngineTest {
 protected:
  void wait_streams(size_t n) {
    while (engine_->streams() != n) std::this_thread::yield();
  }
};

TEST(SseEvent, IsOneBlockWhateverIsInIt) {
  EXPECT_EQ(sse_event("7", "task", "{}"), "id: 7\nevent: task\ndata: {}\n\n");
  EXPECT_EQ(sse_event("", "", "a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(sse_event("1\n2", "x\r\nevent: y", ""), "id: 1 2\nevent: x  event: y\ndata: \n\n");
}

TEST_F(StreamTest, FollowsAndEnds) {
  start();
  auto client = tcp();
  client.send(kFollow);
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_NE(client.buffer().find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(client.buffer().find("X-Request-Id: "), std::string::npos);
  for (int i = 0; i < 50; ++i) {
    const std::string event = sse_event(std::to_string(i), "event", "{}");
    feed_->push(event);
    ASSERT_TRUE(client.receive_until(event));
  }
  feed_->push("data: last\n\n", true);
  const std::string all = client.receive_all();
  EXPECT_TRUE(all.ends_with("c\r\ndata: last\n\n\r\n0\r\n\r\n")) << all;
  EXPECT_TRUE(feed_->wait_alive(0));
  wait_streams(0);
  feed_->push("nobody hears this");  // wakes a stream that is gone
}

TEST_F(StreamTest, OldClientsGetPlainBytes) {
  start();
  auto client = tcp();
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  feed_->push("data: x\n\n", true);
  const std::string all = client.receive_all();
  EXPECT_TRUE(all.ends_with("\r\n\r\ndata: x\n\n")) << all;
}

TEST_F(StreamTest, HeartbeatAfterFifteenSecondsOfSilence) {
  use_fake_time();
  start();
  auto client = tcp();
  client.send(kFollow);
  feed_->push("data: a\n\n");
  ASSERT_TRUE(client.receive_until("data: a\n\n"));
  advance(seconds(14));
  feed_->push("data: b\n\n");
  ASSERT_TRUE(client.receive_until("data: b\n\n"));
  advance(seconds(14));
  feed_->push("data: c\n\n");
  ASSERT_TRUE(client.receive_until("data: c\n\n"));
  EXPECT_EQ(client.buffer().find(": heartbeat"), std::string::npos);
  advance(seconds(15));
  ASSERT_TRUE(client.receive_until(": heartbeat\n\n"));
}

TEST_F(StreamTest, LostClientsAreNoticedWithoutAnythingToSend) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(i % 2 == 0 ? tcp() : local());
    clients.back().send(kFollow);
    ASSERT_TRUE(clients.back().receive_until("\r\n\r\n"));
  }
  EXPECT_EQ(engine_->streams(), 20u);
  clients.clear();
  EXPECT_TRUE(feed_->wait_alive(0));
  wait_streams(0);
}

TEST_F(StreamTest, BeyondTheCapIsRefusedAndOthersGoOn) {
  options_.max_streams = 64;
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(tcp());
    clients.back().send(kFollow);
    ASSERT_TRUE(clients.back().receive_until("\r\n\r\n"));
  }
  auto one_more = tcp();
  EXPECT_EQ(one_more.ask(kFollow).status, 429);
  EXPECT_EQ(one_more.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  EXPECT_TRUE(alive());
  feed_->push("data: all\n\n");
  for (auto& client : clients) ASSERT_TRUE(client.receive_until("data: all\n\n"));
  clients.pop_back();
  wait_streams(63);
  one_more.send(kFollow);
  EXPECT_TRUE(one_more.receive_until("data: all\n\n"));
}

TEST_F(StreamTest, ASlowFollowerIsNotPulledAndFinallyDropped) {
  use_fake_time();
  feed_->endless = true;
  start();
  auto slow = tcp();
  slow.send(kFollow);
  ASSERT_TRUE(slow.readable(20'000));
  ASSERT_TRUE(alive());
  // Pulling stops when the socket is full.
  int before = -1, now = 0;
  while (before != now) {
    before = now;
    ASSERT_TRUE(alive());
    std::this_thread::sleep_for(milliseconds(20));
    const std::lock_guard lock(feed_->mutex);
    now = feed_->pulls;
  }
  EXPECT_LT(now, 400);  // of 64 KiB each: what the kernel buffers on both sides
  // On a busy machine the socket may have filled only now, and the time counts from then on.
  bool dropped = false;
  for (int i = 0; i < 100 && !dropped; ++i) {
    advance(seconds(31));
    dropped = feed_->wait_alive(0, milliseconds(200));
  }
  EXPECT_TRUE(dropped);
}

TEST_F(StreamTest, AFastReaderGetsEverything) {
  feed_->endless = true;
  start();
  auto client = tcp();
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  size_t total = 0;
  while (total < (32u << 20) && client.receive()) {
    total += client.buffer().size();
    client.buffer().clear();
  }
  EXPECT_GE(total, 32u << 20);
  EXPECT_TRUE(alive());
}

TEST_F(StreamTest, StopEndsOpenStreams) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(tcp());
    clients.back().send(kFollow);
    ASSERT_TRUE(clients.back().receive_until("\r\n\r\n"));
  }
  std::atomic<bool> done{false};
  std::thread pusher([&] {
    while (!done) feed_->push("data: x\n\n");
  });
  engine_->stop();
  {
    const std::lock_guard lock(feed_->mutex);
    EXPECT_EQ(feed_->alive, 0);
  }
  done = true;
  pusher.join();
  for (auto& client : clients) {
    // No last chunk: a client can tell this from the end of a job.
    EXPECT_FALSE(client.receive_all().ends_with("0\r\n\r\n"));
  }
}

TEST_F(StreamTest, FourHundredStreams) {
  options_.max_streams = 400;
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(tcp());
    clients.back().send(kFollow);
  }
  for (auto& client : clients) ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  feed_->push("data: hello\n\n");
  for (auto& client : clients) ASSERT_TRUE(client.receive_until("data: hello\n\n"));
}

TEST_F(StreamTest, AClientThatTalksTooMuchIsDropped) {
  start();
  auto client = tcp();
  client.send(kFollow);
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  const std::string noise(64 << 10, 'n');
  while (client.send(noise)) {
  }
  EXPECT_TRUE(feed_->wait_alive(0));
}

// A topic that a test feeds, and streams that wait for it.
class Board final : public Topic {
 public:
  void start(std::function<void()> wake) override {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    ++starts_;
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    ++stops_;
  }
  std::optional<milliseconds> poll() const override { return poll_; }
  bool changed() override {
    const std::lock_guard lock(mutex_);
    ++looks_;
    return std::exchange(asked_, size_) != size_;
  }

  void write(const std::string& text, bool wake) {
    std::function<void()> copy;
    {
      const std::lock_guard lock(mutex_);
      text_ = std::make_shared<const std::string>(text);
      size_ += 1;
      copy = wake_;
    }
    if (wake && copy) copy();
  }
  std::pair<size_t, SharedText> now() {
    const std::lock_guard lock(mutex_);
    ++reads_;
    return {size_, text_};
  }
  int count(int Board::*what) {
    const std::lock_guard lock(mutex_);
    return this->*what;
  }

  std::optional<milliseconds> poll_;
  int starts_ = 0, stops_ = 0, looks_ = 0, reads_ = 0;

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  size_t size_ = 0, asked_ = 0;
  SharedText text_;
};

class BoardSource final : public StreamSource {
 public:
  explicit BoardSource(std::shared_ptr<Board> board) : board_(std::move(board)) {}
  StreamStep next() override {
    const auto [size, text] = board_->now();
    if (size == seen_) return StreamStep::idle(board_);
    seen_ = size;
    return StreamStep::data(text);
  }

 private:
  const std::shared_ptr<Board> board_;
  size_t seen_ = 0;
};

class TopicTest : public StreamTest {
 protected:
  Response handle(Request& request) override {
    if (request.target == "/board") return Response::sse(std::make_unique<BoardSource>(board_));
    return StreamTest::handle(request);
  }
  RawClient follow() {
    auto client = tcp();
    client.send("GET /board HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.receive_until("\r\n\r\n"));
    return client;
  }
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
};

TEST_F(TopicTest, OneWakeReachesAllAndTheTopicEndsWithItsLastStream) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(follow());
  while (board_->count(&Board::reads_) < 51) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    const std::string text = "data: news " + std::to_string(i) + "\n\n";
    board_->write(text, true);
    for (auto& client : clients) ASSERT_TRUE(client.receive_until(text));
  }
  EXPECT_EQ(board_->count(&Board::starts_), 1);
  clients.clear();
  wait_streams(0);
  while (board_->count(&Board::stops_) == 0) std::this_thread::yield();
  auto again = follow();
  board_->write("data: again\n\n", true);
  EXPECT_TRUE(again.receive_until("data: again\n\n"));
}

TEST_F(TopicTest, ATopicIsAskedOnceForAllOfItsStreams) {
  use_fake_time();
  board_->poll_ = milliseconds(100);
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(follow());
  while (board_->count(&Board::reads_) < 51) std::this_thread::yield();
  const int before = board_->count(&Board::looks_);
  board_->write("data: grown\n\n", false);
  advance(milliseconds(100));
  for (auto& client : clients) ASSERT_TRUE(client.receive_until("data: grown\n\n"));
  EXPECT_EQ(board_->count(&Board::looks_), before + 1);
  // Each of them has read what is new, and once more that there is nothing else.
  while (board_->count(&Board::reads_) < 51 + 2 * 50) std::this_thread::yield();
  const int reads = board_->count(&Board::reads_);
  for (int i = 0; i < 3; ++i) {
    advance(milliseconds(100));
    while (board_->count(&Board::looks_) < before + 2 + i) std::this_thread::yield();
  }
  EXPECT_EQ(board_->count(&Board::reads_), reads) << "without news nobody reads";
}

TEST_F(TopicTest, OneThatDoesNotReadHoldsUpNobodyAndKeepsOneTextAtMost) {
  start();
  auto slow = follow(), fast = follow();
  const std::string big(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    const std::string end = "end " + std::to_string(i) + "\n\n";
    board_->write("data: " + big + end, true);
    ASSERT_TRUE(fast.receive_until(end));
    fast.buffer().clear();
  }
  EXPECT_EQ(engine_->streams(), 2u);
  // What it gets when it reads again: what was under way, then the newest.
  ASSERT_TRUE(slow.receive_until("end 19\n\n"));
  EXPECT_LT(slow.buffer().size(), 8u << 20);
}

}  // namespace
}  // namespace clusterctl::api
