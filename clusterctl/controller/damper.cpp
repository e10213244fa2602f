#include "controller/damper.h"

namespace clusterctl::controller {

bool Damper::admit(const std::string& node, fleet::Presence presence, Time now) {
  Entry& e = nodes_[node];
  while (!e.changes.empty() && now - e.changes.front() > kWindow) e.changes.pop_front();
  e.changes.push_back(now);
  if (e.changes.size() > kFree + 1) e.changes.pop_front();
  if (e.changes.size() > kFree && now - e.stored < kHold) {
    e.held = presence;
    return false;
  }
  e.stored = now;
  e.held.reset();
  return true;
}

bool Damper::flaps(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it != nodes_.end() && it->second.changes.size() > kFree;
}

std::vector<std::pair<std::string, fleet::Presence>> Damper::due(Time now) {
  std::vector<std::pair<std::string, fleet::Presence>> out;
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    Entry& e = it->second;
    if (e.held && now - e.stored >= kHold) {
      out.emplace_back(it->first, *e.held);
      e.held.reset();
      e.stored = now;
    }
    const bool quiet = !e.held && (e.changes.empty() || now - e.changes.back() > kWindow);
    it = quiet ? nodes_.erase(it) : std::next(it);
  }
  return out;
}

}  // namespace clusterctl::controller
