// The fleet's events as the notifier reads them, and what a receiver outside is told of one. Any
// thread.
#pragma once

#include "controller/controller.h"
#include "notify/notifier.h"

namespace clusterctl::controller {

class Notices final : public notify::Source {
 public:
  explicit Notices(Controller& controller) : c_(controller) {}

  Page since(uint64_t seq, size_t limit) const override;
  std::optional<Json> describe(uint64_t seq) const override;
  std::string fleet_id() const override { return c_.fleet()->cluster.id; }

 private:
  Controller& c_;
};

}  // namespace clusterctl::controller
