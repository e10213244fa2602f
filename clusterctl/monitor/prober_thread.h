// The thread that runs a Prober. Built and destroyed by one thread.
#pragma once

#include <memory>
#include <thread>

#include "monitor/prober.h"

namespace clusterctl::monitor {

class ProberThread {
 public:
  ProberThread(Prober& prober, Dialer& dialer)
      : dialer_(dialer), thread_([this, &prober](std::stop_token stop) {
          std::vector<Answer> answers;
          while (!stop.stop_requested()) answers = dialer_.wait(prober.turn(answers));
        }) {}
  // Does not wait for probes that are under way.
  ~ProberThread() {
    thread_.request_stop();
    dialer_.wake();
  }
  ProberThread(const ProberThread&) = delete;
  ProberThread& operator=(const ProberThread&) = delete;

 private:
  Dialer& dialer_;
  std::jthread thread_;
};

}  // namespace clusterctl::monitor
