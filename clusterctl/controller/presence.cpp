// Who is there: reports of monitors and the findings of the prober, into the store.
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "controller/controller.h"
#include "fleet/recognize.h"

namespace clusterctl::controller {
namespace {

bool only_presence(fleet::Node before, const fleet::Node& after) {
  before.status.presence = after.status.presence;
  before.status.last_seen = after.status.last_seen;
  return before == after;
}

}  // namespace

// Each machine by itself, so that the events of one that came and went stand in that order. `fleet`
// is what is stored with `change` applied to it.
void Controller::work_off(Report& report, fleet::Snapshot& fleet, Change& change) {
  const Time now = deps_.clock.now();
  const auto new_id = [this] { return deps_.ids.node_id(); };
  for (const fleet::Sighting& s : report.machines) {
    std::set<std::string> changed;
    const fleet::Recognized found = report.discovered
                                        ? fleet::discovered(fleet, s, new_id, now, changed)
                                        : fleet::disappeared(fleet, s, now, changed);
    Seen seen{s.name, "", found.node, found.finding, found.message};
    const bool damped = !found.node.empty() && !admit(found.node, fleet, change, changed);
    if (damped) seen.message += "; it comes and goes: stored in a moment";
    if (const auto it = fleet.nodes.find(found.node); it != fleet.nodes.end())
      seen.node = it->second.name;
    report.seen.push_back(std::move(seen));
    take_changed(fleet, std::move(changed), change);
  }
}

// The node as it was before the report that is being worked off; nullptr: it is new.
const fleet::Node* Controller::before(const Change& change, const std::string& id) const {
  if (const auto it = change.nodes.find(id); it != change.nodes.end()) return &it->second;
  const auto it = state()->fleet->nodes.find(id);
  return it == state()->fleet->nodes.end() ? nullptr : &it->second;
}

// False: only its presence has changed, too often; that is taken back and kept for later.
bool Controller::admit(const std::string& id, fleet::Snapshot& fleet, const Change& change,
                       std::set<std::string>& changed) {
  fleet::Node& node = fleet.nodes.at(id);
  const fleet::Node* old = before(change, id);
  if (!old || !only_presence(*old, node)) return true;
  // Also a report of what is stored counts when another state is held back.
  if (old->status.presence == node.status.presence && !damper_.flaps(id)) {
    changed.erase(id);  // nothing but the time
    node = *old;
    return true;
  }
  if (damper_.admit(id, node.status.presence, deps_.clock.now())) return true;
  node = *old;
  changed.erase(id);
  return false;
}

// Conflicts are settled, then everything that has changed goes into `change` with its events.
void Controller::take_changed(fleet::Snapshot& fleet, std::set<std::string> changed,
                              Change& change) const {
  if (changed.empty()) return;
  fleet::settle_conflicts(fleet, changed, deps_.clock.now(), changed);
  for (const std::string& id : changed) {
    const fleet::Node& node = fleet.nodes.at(id);
    if (const fleet::Node* old = before(change, id)) {
      add_events(change, *old, node, "");
    } else {
      change.events.push_back({0, {}, "node.added", node.name, "", node.spec.addr});
    }
    change.nodes[id] = node;
  }
}

Status Controller::record_presence(const std::vector<monitor::Finding>& found) {
  // A batch of the store holds 100 operations: a record, an event, and an old event that goes.
  constexpr size_t kNodesACommit = 32;
  for (size_t at = 0; at < found.size(); at += kNodesACommit) {
    MutexLock lock(mutex_);
    Change change;
    change.what = "seen by the monitor";
    fleet::Snapshot fleet = *state()->fleet;
    for (size_t i = at; i < std::min(found.size(), at + kNodesACommit); ++i) {
      const monitor::Finding& f = found[i];
      std::set<std::string> changed;
      fleet::record_presence(fleet, f.node, f.presence, deps_.clock.now(), changed, f.answered);
      if (fleet.nodes.count(f.node)) admit(f.node, fleet, change, changed);
      take_changed(fleet, std::move(changed), change);
    }
    if (auto done = commit(std::move(change)); !done) return done;
  }
  return {};
}

void Controller::settle_flapping() {
  const auto due = damper_.due(deps_.clock.now());
  if (due.empty()) return;
  Change change;
  fleet::Snapshot fleet = *state()->fleet;
  for (const auto& [id, presence] : due) {
    std::set<std::string> changed;
    fleet::record_presence(fleet, id, presence, deps_.clock.now(), changed);
    take_changed(fleet, std::move(changed), change);
  }
  if (auto done = commit(std::move(change)); !done)
    log::warn("presence of nodes cannot be stored: {}", done.error().line());
}

Status Controller::set_isolated(std::optional<Time> since, const std::string& message) {
  MutexLock lock(mutex_);
  Change change;
  change.isolated_since = since;
  change.events.push_back(
      {0, {}, since ? "monitor.isolated" : "monitor.connected", "", "", message});
  return commit(std::move(change));
}

}  // namespace clusterctl::controller
