// Waits for many file descriptors at once (epoll) and for other threads (eventfd). One thread owns
// it and waits; only wake() may be called by any thread.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl {

class Poller {
 public:
  struct Event {
    uint64_t id = 0;  // as given to add()
    uint32_t events = 0;
  };

  // Before anything else.
  Status open();
  // `events` are EPOLL… flags. The id must not be 0.
  Status add(int fd, uint64_t id, uint32_t events);
  void modify(int fd, uint64_t id, uint32_t events);
  void remove(int fd);
  // What has happened; empty after the timeout or a wake(). No timeout: for ever.
  const std::vector<Event>& wait(std::optional<std::chrono::milliseconds> timeout);
  void wake();

 private:
  Fd epoll_;
  Fd event_;
  std::vector<Event> ready_;
};

}  // namespace clusterctl
