#include "monitor/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include "base/annotations.h"

namespace clusterctl::monitor {
namespace {

constexpr std::chrono::seconds kKept{60};
constexpr size_t kMaxNames = 20000;

std::string look_up_in_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return "";
  std::string out;
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (const addrinfo* a = found; a && out.empty(); a = a->ai_next) {
    const void* raw = nullptr;
    if (a->ai_family == AF_INET) raw = &reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr;
    if (a->ai_family == AF_INET6)
      raw = &reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr;
    if (raw && inet_ntop(a->ai_family, raw, text.data(), text.size())) out = text.data();
  }
  freeaddrinfo(found);
  return out;
}

}  // namespace

// Outlives the Resolver while the system's look-up hangs.
struct Resolver::Shared {
  struct Entry {
    std::optional<std::string> addr;
    std::chrono::steady_clock::time_point until{};
    bool asked = false;
  };
  std::function<void()> ready;
  std::function<std::string(const std::string&)> look_up;
  Mutex mutex;
  CondVar changed;
  bool over GUARDED_BY(mutex) = false;
  std::deque<std::string> queue GUARDED_BY(mutex);
  std::map<std::string, Entry> names GUARDED_BY(mutex);

  void work() {
    for (;;) {
      std::string name;
      {
        MutexLock lock(mutex);
        while (queue.empty() && !over)
          changed.wait_until(mutex, std::chrono::steady_clock::now() + std::chrono::hours(1));
        if (over) return;
        name = std::move(queue.front());
        queue.pop_front();
      }
      std::string addr = look_up(name);
      MutexLock lock(mutex);
      if (over) return;
      Entry& e = names[name];
      e.addr = std::move(addr);
      e.until = std::chrono::steady_clock::now() + kKept;
      e.asked = false;
      ready();
    }
  }
};

Resolver::Resolver(std::function<void()> ready,
                   std::function<std::string(const std::string&)> look_up)
    : shared_(std::make_shared<Shared>()) {
  shared_->ready = std::move(ready);
  shared_->look_up = look_up ? std::move(look_up) : look_up_in_system;
  // Detached: nobody waits for a name server that does not answer, not even the end of the daemon.
  std::thread([shared = shared_] { shared->work(); }).detach();
}

Resolver::~Resolver() {
  MutexLock lock(shared_->mutex);
  shared_->over = true;
  shared_->changed.notify_all();
}

std::optional<std::string> Resolver::find(const std::string& name) {
  MutexLock lock(shared_->mutex);
  if (shared_->names.size() > kMaxNames) shared_->names.clear();
  Shared::Entry& e = shared_->names[name];
  if (!e.asked && std::chrono::steady_clock::now() >= e.until) {
    e.asked = true;
    shared_->queue.push_back(name);
    shared_->changed.notify_all();
  }
  return e.addr;
}

}  // namespace clusterctl::monitor
