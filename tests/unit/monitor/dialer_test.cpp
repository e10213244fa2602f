// The real sockets of the prober, on loopback addresses.
#include "monitor/dialer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/files.h"
#include "monitor/resolver.h"

namespace clusterctl::monitor {
namespace {

using std::chrono::milliseconds;

// Listens on a loopback address; what it says to one caller is up to the test.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
    socklen_t length = sizeof a;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&a), &length);
    port = ntohs(a.sin_port);
  }
  void say(const std::string& text) {
    caller_.reset(::accept(fd_.get(), nullptr, nullptr));
    ASSERT_EQ(::write(caller_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void more(const std::string& text) {
    ASSERT_EQ(::write(caller_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void hang_up() { caller_.reset(); }
  void close() { fd_.reset(); }
  int port = 0;

 private:
  Fd fd_, caller_;
};

class DialerTest : public testing::Test {
 protected:
  DialerTest() : dialer_(std::move(*make_socket_dialer())) {}
  Answer answer() {
    for (int turn = 0; turn < 200; ++turn) {
      const auto answers = dialer_->wait(milliseconds(100));
      if (!answers.empty()) return answers.front();
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  std::unique_ptr<Dialer> dialer_;
  Listener listener_;
};

TEST_F(DialerTest, ABannerIsAnAnswer) {
  dialer_->dial(7, "127.0.0.1", listener_.port);
  listener_.say("SSH-2.0-OpenSSH_9.2\r\n");
  const Answer a = answer();
  EXPECT_EQ(a.probe, 7u);
  EXPECT_TRUE(a.ssh) << a.why;
}

TEST_F(DialerTest, OtherLinesMayComeFirstAndInPieces) {
  dialer_->dial(1, "127.0.0.1", listener_.port);
  listener_.say("welcome\r\nSS");
  EXPECT_TRUE(dialer_->wait(milliseconds(50)).empty());
  listener_.more("H-2.0-x\r\n");
  EXPECT_TRUE(answer().ssh);
}

TEST_F(DialerTest, WhatIsNoSshServerIsNone) {
  dialer_->dial(1, "127.0.0.1", listener_.port);
  listener_.say("HTTP/1.1 400 Bad Request\r\n" + std::string(4000, 'x'));
  const Answer a = answer();
  EXPECT_FALSE(a.ssh);
  EXPECT_NE(a.why.find("no SSH"), std::string::npos);
}

TEST_F(DialerTest, HangingUpIsNoAnswer) {
  dialer_->dial(1, "127.0.0.1", listener_.port);
  listener_.say("");
  listener_.hang_up();
  EXPECT_FALSE(answer().ssh);
}

TEST_F(DialerTest, AClosedPortIsNamed) {
  const int port = listener_.port;
  listener_.close();
  dialer_->dial(1, "127.0.0.1", port);
  EXPECT_NE(answer().why.find("refused"), std::string::npos);
}

TEST_F(DialerTest, HostNamesAreLookedUp) {
  dialer_->dial(1, "localhost", listener_.port);
  std::jthread server([this] { listener_.say("SSH-2.0-x\r\n"); });
  // It may be ::1, where nobody listens: an answer either way, and never a block.
  const Answer a = answer();
  if (!a.ssh) dialer_->dial(2, "127.0.0.1", listener_.port);  // lets the server go on
  EXPECT_TRUE(a.ssh || a.why.find("refused") != std::string::npos) << a.why;
}

TEST_F(DialerTest, AHungUpProbeHasNoAnswer) {
  dialer_->dial(1, "127.0.0.1", listener_.port);
  dialer_->hang_up(1);
  dialer_->dial(2, "127.0.0.1", listener_.port);
  listener_.say("SSH-2.0-x\r\n");  // accepts the first, which is closed
  listener_.say("SSH-2.0-x\r\n");
  EXPECT_EQ(answer().probe, 2u);
}

TEST(Resolver, AHangingLookUpBlocksNobody) {
  std::atomic<bool> go = false;
  std::atomic<int> ready = 0;
  auto resolver = std::make_unique<Resolver>([&] { ++ready; },
                                             [&go](const std::string& name) {
                                               while (!go) std::this_thread::yield();
                                               return name == "a" ? "10.0.0.1" : "";
                                             });
  EXPECT_EQ(resolver->find("a"), std::nullopt);
  EXPECT_EQ(resolver->find("none"), std::nullopt);
  go = true;
  while (ready < 2) std::this_thread::yield();
  EXPECT_EQ(resolver->find("a"), "10.0.0.1");
  EXPECT_EQ(resolver->find("none"), "");
}

}  // namespace
}  // namespace clusterctl::monitor
