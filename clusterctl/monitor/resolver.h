// Looks host names up without making anybody wait: one thread asks the system, answers are kept for
// a minute, and an old answer serves until the new one is there. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace clusterctl::monitor {

class Resolver {
 public:
  // `ready` is called by the resolver's thread whenever an answer has come. `look_up`: the system's
  // when absent; gives an IP address, or "" when there is none.
  explicit Resolver(std::function<void()> ready,
                    std::function<std::string(const std::string&)> look_up = {});
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // An IP address; "" when the name has none; nullopt: not known yet, ask again after `ready`.
  std::optional<std::string> find(const std::string& name);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace clusterctl::monitor
