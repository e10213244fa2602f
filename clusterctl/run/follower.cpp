#include "run/follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace clusterctl::run {

Follower::Follower(fs::path path, std::function<void(std::string_view)> on_line)
    : path_(std::move(path)), on_line_(std::move(on_line)) {}

void Follower::read() {
  if (!fd_.valid()) fd_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) return;
  for (;;) {
    const ssize_t n = ::read(fd_.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    take({buffer_.data(), static_cast<size_t>(n)});
  }
}

void Follower::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool complete = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, complete ? end : bytes.size());
    bytes.remove_prefix(complete ? end + 1 : bytes.size());
    if (complete && partial_.empty() && !overlong_) {
      on_line_(piece);
      continue;
    }
    if (!overlong_) partial_.append(piece);
    if (partial_.size() > kMaxLine) overlong_ = true;
    if (overlong_) partial_.clear();
    if (!complete) continue;
    on_line_(partial_);
    partial_.clear();
    overlong_ = false;
  }
}

}  // namespace clusterctl::run
