// The thread that runs a Notifier. Built and destroyed by one thread; wake() from any.
#pragma once

#include <memory>
#include <thread>

#include "notify/notifier.h"

namespace clusterctl::notify {

class NotifyThread {
 public:
  NotifyThread(Notifier& notifier, Transport& transport)
      : transport_(transport), thread_([this, &notifier](std::stop_token stop) {
          std::vector<Outcome> outcomes;
          while (!stop.stop_requested()) outcomes = transport_.wait(notifier.turn(outcomes));
        }) {}
  // Does not wait for posts that are under way.
  ~NotifyThread() {
    thread_.request_stop();
    transport_.wake();
  }
  NotifyThread(const NotifyThread&) = delete;
  NotifyThread& operator=(const NotifyThread&) = delete;

  // There may be new events.
  void wake() { transport_.wake(); }

 private:
  Transport& transport_;
  std::jthread thread_;
};

}  // namespace clusterctl::notify
