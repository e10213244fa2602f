// An HTTP server of one thread that gives fixed raw answers, one connection each, to test the real
// client against broken daemons.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/annotations.h"
#include "base/files.h"

namespace clusterctl::client {

class TinyServer {
 public:
  // `answer` gets the raw request (head and as much of the body as Content-Length says) and gives
  // the raw answer.
  using Handler = std::function<std::string(const std::string& request)>;

  TinyServer(Handler answer, const std::string& socket_path = "") : answer_(std::move(answer)) {
    listener_.reset(socket(socket_path.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket_path.empty()) {
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      (void)!bind(listener_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a);
      socklen_t n = sizeof a;
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&a), &n);
      port = ntohs(a.sin_port);
    } else {
      sockaddr_un a{};
      a.sun_family = AF_UNIX;
      socket_path.copy(a.sun_path, sizeof a.sun_path - 1);
      (void)!bind(listener_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a);
    }
    (void)!listen(listener_.get(), 16);
    thread_ = std::thread([this] { serve(); });
  }
  ~TinyServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  int port = 0;
  std::vector<std::string> requests() {
    MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (;;) {
      Fd fd(accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      const std::string request = read_request(fd.get());
      {
        MutexLock lock(mutex_);
        requests_.push_back(request);
      }
      const std::string answer = answer_(request);
      size_t at = 0;
      while (at < answer.size()) {
        const ssize_t n = ::send(fd.get(), answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
    }
  }

  static std::string read_request(int fd) {
    std::string text;
    char buffer[65536];
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t field = text.find("Content-Length: ");
        const size_t body = field < head ? std::stoul(text.substr(field + 16)) : 0;
        if (text.size() >= head + 4 + body) return text;
      }
      const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return text;
      text.append(buffer, static_cast<size_t>(n));
    }
  }

  Handler answer_;
  Fd listener_;
  std::thread thread_;
  Mutex mutex_;
  std::vector<std::string> requests_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::client
