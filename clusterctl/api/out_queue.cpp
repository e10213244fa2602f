#include "api/out_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace clusterctl::api {

void OutQueue::push(std::string text) {
  if (!text.empty()) pieces_.push_back({std::move(text), nullptr});
}

void OutQueue::push(SharedText text) {
  if (text && !text->empty()) pieces_.push_back({"", std::move(text)});
}

void OutQueue::clear() {
  pieces_ = {};
  first_ = sent_ = 0;
}

OutQueue::Sent OutQueue::send(int fd, bool& progress) {
  while (first_ < pieces_.size()) {
    std::array<iovec, 8> parts;
    size_t count = 0;
    for (size_t i = first_; i < pieces_.size() && count < parts.size(); ++i) {
      const std::string_view text = pieces_[i].view().substr(i == first_ ? sent_ : 0);
      parts[count++] = {const_cast<char*>(text.data()), text.size()};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      progress = true;
      drop_sent(static_cast<size_t>(n));
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return Sent::kBlocked;
    } else if (!(n < 0 && errno == EINTR)) {
      return Sent::kGone;
    }
  }
  clear();
  return Sent::kAll;
}

void OutQueue::drop_sent(size_t n) {
  while (n > 0) {
    const size_t left = pieces_[first_].view().size() - sent_;
    if (n < left) {
      sent_ += n;
      return;
    }
    n -= left;
    pieces_[first_] = {};  // memory goes as the bytes do
    ++first_;
    sent_ = 0;
  }
}

}  // namespace clusterctl::api
