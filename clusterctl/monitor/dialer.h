// Knocks at machines: connects by TCP and waits for the banner of an SSH server. Never blocks; one
// thread owns it and calls everything but wake(), which may be called by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace clusterctl::monitor {

struct Answer {
  uint64_t probe = 0;  // as given to dial()
  bool ssh = false;    // an SSH server has said its name
  std::string why;     // else: one line
};

class Dialer {
 public:
  virtual ~Dialer() = default;
  // Starts a probe; its answer comes from wait() unless hang_up() comes first. `addr`: an IP
  // address or a host name.
  virtual void dial(uint64_t probe, const std::string& addr, int port) = 0;
  virtual void hang_up(uint64_t probe) = 0;
  virtual std::vector<Answer> wait(std::chrono::milliseconds timeout) = 0;
  virtual void wake() = 0;
};

// Sockets; host names are looked up in a thread of their own, and an address that was found serves
// until a newer one is known.
Result<std::unique_ptr<Dialer>> make_socket_dialer();

}  // namespace clusterctl::monitor
