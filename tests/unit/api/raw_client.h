// A client that says exactly what a test tells it to, right or wrong, over TCP, TLS or a Unix
// socket. With CLUSTERCTL_TEST_TLS in the environment all TCP of these tests is TLS.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/strings.h"
#include "fakes/test_tls.h"

namespace clusterctl::api {

struct RawAnswer {
  int status = 0;  // 0: none came
  std::map<std::string, std::string> headers;
  std::string body;
};

class RawClient {
 public:
  static bool over_tls() { return std::getenv("CLUSTERCTL_TEST_TLS") != nullptr; }
  static RawClient tcp(int port) {
    RawClient out = plain(port);
    if (over_tls()) out.shake_hands();
    return out;
  }
  static RawClient tls(int port, TestTlsOptions options = {}) {
    RawClient out = plain(port);
    out.shake_hands(options);
    return out;
  }
  static RawClient plain(int port) {
    RawClient out(AF_INET);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.connect_to(reinterpret_cast<sockaddr*>(&address), sizeof address);
    return out;
  }
  static RawClient unix_socket(const fs::path& path) {
    RawClient out(AF_UNIX);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    out.connect_to(reinterpret_cast<sockaddr*>(&address), sizeof address);
    return out;
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  SSL* ssl() const { return ssl_.get(); }
  // Of TLS.
  bool established() const { return ssl_ && SSL_is_init_finished(ssl_.get()); }
  // The other end has said that nothing will follow.
  bool ended_in_order() const {
    return ssl_ && (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  void close() { fd_.reset(); }

  // False when the other end has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ssl_ ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                             : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // One more piece into the buffer; false at the end (or after 20 s).
  bool receive() {
    char piece[65536];
    errno = 0;
    const ssize_t n =
        ssl_ ? SSL_read(ssl_.get(), piece, sizeof piece) : recv(fd_.get(), piece, sizeof piece, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      ADD_FAILURE() << "nothing came for 20 s";
    if (n <= 0) return false;
    buffer_.append(piece, static_cast<size_t>(n));
    return true;
  }
  // Everything until the other end closes.
  std::string receive_all() {
    while (receive()) {
    }
    return std::move(buffer_);
  }
  // Until the text has been received; false if it never is. Keeps what was received.
  bool receive_until(std::string_view text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }
  std::string& buffer() { return buffer_; }
  // Ready to read (or closed) within the time.
  bool readable(int milliseconds) {
    if (ssl_ && SSL_pending(ssl_.get()) > 0) return true;
    pollfd p{fd_.get(), POLLIN, 0};
    return poll(&p, 1, milliseconds) == 1;
  }

  RawAnswer answer(bool head_only = false) {
    RawAnswer out;
    if (!receive_until("\r\n\r\n")) return out;
    const size_t end = buffer_.find("\r\n\r\n");
    const auto lines = split(buffer_.substr(0, end), '\n');
    buffer_.erase(0, end + 4);
    out.status = std::stoi(lines[0].substr(9, 3));
    for (size_t i = 1; i < lines.size(); ++i) {
      const size_t colon = lines[i].find(':');
      out.headers[lower(lines[i].substr(0, colon))] = trim(lines[i].substr(colon + 1));
    }
    const auto length = out.headers.find("content-length");
    if (length == out.headers.end() || head_only) return out;
    const size_t wanted = std::stoul(length->second);
    while (buffer_.size() < wanted && receive()) {
    }
    out.body = buffer_.substr(0, wanted);
    buffer_.erase(0, wanted);
    return out;
  }
  RawAnswer ask(std::string_view bytes) {
    send(bytes);
    return answer();
  }

 private:
  explicit RawClient(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  void connect_to(const sockaddr* address, socklen_t size) {
    connected_ = connect(fd_.get(), address, size) == 0;
  }

  void shake_hands(TestTlsOptions options = {}) {
    ssl_ = test_tls_client(fd_.get(), options);
    connected_ = connected_ && SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }

  Fd fd_;
  TestSsl ssl_;
  bool connected_ = false;
  std::string buffer_;
};

}  // namespace clusterctl::api
