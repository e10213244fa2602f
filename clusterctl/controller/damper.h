// Keeps a node that comes and goes all the time from costing a commit and an event each time: after
// a few changes its newest state is stored at most once in a while, so that what is stored is late
// by seconds, never wrong for good. Belongs to one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fleet/node.h"

namespace clusterctl::controller {

class Damper {
 public:
  static constexpr size_t kFree = 6;  // changes within kWindow that are stored at once
  static constexpr std::chrono::seconds kWindow{60};
  static constexpr std::chrono::seconds kHold{5};  // between two stored changes after that

  // Whether a change of this node's presence is to be stored now; else due() gives it back.
  bool admit(const std::string& node, fleet::Presence presence, Time now);
  // It flaps: what is said about it is what was stored last.
  bool flaps(const std::string& node) const;
  // The newest state of nodes that have been held back for long enough. What has been quiet for a
  // while is forgotten.
  std::vector<std::pair<std::string, fleet::Presence>> due(Time now);

 private:
  struct Entry {
    std::deque<Time> changes;
    Time stored{};
    std::optional<fleet::Presence> held;
  };
  std::map<std::string, Entry> nodes_;
};

}  // namespace clusterctl::controller
