// A real engine on a free port and a Unix socket, with a handler that says what it was given.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "api/http_engine.h"
#include "fakes/fake_steady.h"
#include "raw_client.h"

namespace clusterctl::api {

// A stream that tests feed. Shared by the source, which the engine owns, and the test.
struct Feed {
  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;
  bool ended = false;
  int alive = 0;  // sources that exist
  int pulls = 0;
  bool endless = false;  // always has more
  std::vector<std::function<void()>> wakes;

  void push(const std::string& text, bool end = false) {
    std::vector<std::function<void()>> copy;
    {
      const std::lock_guard lock(mutex);
      pending += text;
      ended = end;
      copy = wakes;
    }
    for (const auto& wake : copy) wake();
  }
  bool wait_alive(int n, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, patience, [&] { return alive == n; });
  }
};

class FeedSource final : public StreamSource {
 public:
  explicit FeedSource(std::shared_ptr<Feed> feed) : feed_(std::move(feed)) { count(1); }
  ~FeedSource() override { count(-1); }
  void start(std::function<void()> wake) override {
    const std::lock_guard lock(feed_->mutex);
    feed_->wakes.push_back(std::move(wake));
  }
  StreamStep next() override {
    const std::lock_guard lock(feed_->mutex);
    ++feed_->pulls;
    if (feed_->endless) return StreamStep::data(std::string(64 << 10, 'x'));
    std::string text = feed_->pending.substr(std::min(read_, feed_->pending.size()));
    read_ = feed_->pending.size();
    if (feed_->ended) return StreamStep::end(std::move(text));
    return text.empty() ? StreamStep::idle() : StreamStep::data(std::move(text));
  }

 private:
  void count(int by) {
    const std::lock_guard lock(feed_->mutex);
    feed_->alive += by;
    feed_->changed.notify_all();
  }
  const std::shared_ptr<Feed> feed_;
  size_t read_ = 0;
};

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clusterctl-api-XXXXXX";
    dir_ = mkdtemp(name);
    options_.workers = 4;
    options_.linger = std::chrono::milliseconds(5000);
  }
  void TearDown() override {
    if (engine_) engine_->stop();
    fs::remove_all(dir_);
  }

  void start() {
    engine_ = std::make_unique<HttpEngine>(options_, [this](Request& r) { return handle(r); });
    std::shared_ptr<const TlsServer> tls;
    if (RawClient::over_tls() || always_tls_) {
      auto made = TlsServer::make(test_identity().chain, test_identity().key);
      ASSERT_TRUE(made) << made.error().line();
      tls_ = *made;
      tls = *made;
    }
    const auto port = engine_->listen_tcp("127.0.0.1", 0, tls);
    ASSERT_TRUE(port) << port.error().line();
    port_ = *port;
    const auto listening = engine_->listen_unix(socket(), "");
    ASSERT_TRUE(listening) << listening.error().line();
    const auto started = engine_->start();
    ASSERT_TRUE(started) << started.error().line();
  }
  void use_fake_time() {
    options_.now = [this] { return time_.now(); };
  }
  void advance(std::chrono::milliseconds d) {
    time_.advance(d);
    engine_->wake();
  }

  virtual Response handle(Request& request) {
    ++handled_;
    if (request.target == "/stream") return Response::sse(std::make_unique<FeedSource>(feed_));
    if (request.target == "/big") return Response::text(std::string(8 << 20, 'b'));
    if (request.target == "/shared") return Response::json(shared_);
    if (request.target == "/throw") throw std::runtime_error("secret detail");
    if (request.target == "/none") return Response::no_content();
    return Response::json({{"method", request.method},
                           {"target", request.target},
                           {"body_size", request.body.size()},
                           {"uid", static_cast<int64_t>(request.peer.uid)},
                           {"peer", request.peer.address}});
  }

  RawClient tcp() const { return RawClient::tcp(port_); }
  RawClient local() const { return RawClient::unix_socket(socket()); }
  fs::path socket() const { return dir_ / "s"; }
  // The daemon is alive and answers a plain request.
  bool alive() const {
    auto client = always_tls_ ? RawClient::tls(port_, {}) : tcp();
    return client.ask("GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").status == 200;
  }

  fs::path dir_;
  EngineOptions options_;
  FakeSteady time_;
  std::shared_ptr<Feed> feed_ = std::make_shared<Feed>();
  SharedText shared_ = std::make_shared<const std::string>("\"" + std::string(8 << 20, 's') + "\"");
  std::atomic<int> handled_{0};
  int port_ = 0;
  bool always_tls_ = false;
  std::shared_ptr<TlsServer> tls_;
  std::unique_ptr<HttpEngine> engine_;
};

}  // namespace clusterctl::api
