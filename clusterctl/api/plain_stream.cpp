#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "api/byte_stream.h"

namespace clusterctl::api {
namespace {

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Fd fd) : fd_(std::move(fd)) {}

  Io read(char* data, size_t size, size_t& n) override {
    waits_for_ = EPOLLIN;
    const ssize_t got = recv(fd_.get(), data, size, MSG_DONTWAIT);
    if (got < 0) return must_wait() || errno == EINTR ? Io::kBlocked : Io::kGone;
    if (got == 0) return Io::kGone;
    n = static_cast<size_t>(got);
    received_ += n;
    return Io::kDone;
  }

  Io write(const iovec* parts, size_t count, size_t& n) override {
    waits_for_ = EPOLLOUT;
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    ssize_t sent = 0;
    do {
      sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent > 0) {
      n = static_cast<size_t>(sent);
      return Io::kDone;
    }
    return sent < 0 && must_wait() ? Io::kBlocked : Io::kGone;
  }

  void finish() override { shutdown(fd_.get(), SHUT_WR); }
  Fd release() override { return std::move(fd_); }
  int fd() const override { return fd_.get(); }
  uint32_t waits_for() const override { return waits_for_; }
  uint64_t received() const override { return received_; }

 private:
  Fd fd_;
  uint32_t waits_for_ = EPOLLIN;
  uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> make_plain_stream(Fd fd) {
  return std::make_unique<PlainStream>(std::move(fd));
}

}  // namespace clusterctl::api
