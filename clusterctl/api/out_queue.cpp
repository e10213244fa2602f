#include "api/out_queue.h"

#include <array>

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

OutQueue::Sent OutQueue::send(ByteStream& io, bool& progress) {
  while (first_ < pieces_.size()) {
    std::array<iovec, 8> parts;
    size_t count = 0;
    for (size_t i = first_; i < pieces_.size() && count < parts.size(); ++i) {
      const std::string_view text = pieces_[i].view().substr(i == first_ ? sent_ : 0);
      parts[count++] = {const_cast<char*>(text.data()), text.size()};
    }
    size_t n = 0;
    const ByteStream::Io done = io.write(parts.data(), count, n);
    if (done == ByteStream::Io::kBlocked) return Sent::kBlocked;
    if (done == ByteStream::Io::kGone) return Sent::kGone;
    progress = true;
    drop_sent(n);
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
