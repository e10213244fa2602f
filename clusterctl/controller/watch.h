// The fleet as the prober of the monitor room sees and reports it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/controller.h"
#include "monitor/prober.h"

namespace clusterctl::controller {

class Watch final : public monitor::Host {
 public:
  explicit Watch(Controller& controller) : c_(controller) {}
  std::shared_ptr<const fleet::Snapshot> fleet() const override { return c_.state()->fleet; }
  Status record(const std::vector<monitor::Finding>& findings) override {
    return c_.record_presence(findings);
  }
  Status isolated(std::optional<Time> since, const std::string& message) override {
    return c_.set_isolated(since, message);
  }

 private:
  Controller& c_;
};

}  // namespace clusterctl::controller
