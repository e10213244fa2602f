#include "base/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace clusterctl {

Status Poller::open() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !event_.valid()) return fail(errno_error("cannot create", "epoll"));
  return add(event_.get(), 0, EPOLLIN);
}

Status Poller::add(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail(errno_error("cannot wait for", "a file descriptor"));
  }
  return {};
}

void Poller::modify(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

const std::vector<Poller::Event>& Poller::wait(std::optional<std::chrono::milliseconds> timeout) {
  ready_.clear();
  std::array<epoll_event, 256> events;
  const int limit =
      timeout ? static_cast<int>(std::clamp<int64_t>(timeout->count(), 0, INT_MAX)) : -1;
  const int n = epoll_wait(epoll_.get(), events.data(), events.size(), limit);
  for (int i = 0; i < n; ++i) {
    if (events[i].data.u64 != 0) {
      ready_.push_back({events[i].data.u64, events[i].events});
      continue;
    }
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
  }
  return ready_;
}

void Poller::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof one);
}

}  // namespace clusterctl
