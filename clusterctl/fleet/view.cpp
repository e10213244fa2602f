// Who the voting members are, by the last observation.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/patterns.h"
#include "fleet/quorum.h"
#include "fleet/words.h"

namespace clusterctl::fleet {
namespace {

bool votes(const Member& m) {
  return m.role != "learner" && m.role != "worker";
}

// The host of "10.0.0.1:2377", "https://[fd00::1]:2380" or a plain address.
std::string host_of(std::string_view addr) {
  if (const size_t scheme = addr.find("://"); scheme != std::string_view::npos)
    addr.remove_prefix(scheme + 3);
  if (!addr.empty() && addr[0] == '[') {
    const size_t close = addr.find(']');
    return canonical_addr(addr.substr(1, close == std::string_view::npos ? close : close - 1));
  }
  if (std::count(addr.begin(), addr.end(), ':') == 1) addr = addr.substr(0, addr.find(':'));
  return canonical_addr(addr);
}

// Member -> node record: by the recorded id, else by name, else by address.
class Matcher {
 public:
  Matcher(const Snapshot& snapshot, const std::string& service) {
    for (const auto& [id, node] : snapshot.nodes) {
      const auto it = node.status.services.find(service);
      if (it != node.status.services.end() && !it->second.member_id.empty())
        by_id_[it->second.member_id] = &node;
      by_name_[node.name] = &node;
      by_addr_[canonical_addr(node.spec.addr)] = &node;
    }
  }
  const Node* match(const Member& m) const {
    if (const Node* node = look(by_id_, m.id)) return node;
    if (const Node* node = look(by_name_, lower(m.name))) return node;
    return look(by_addr_, host_of(m.addr));
  }

 private:
  static const Node* look(const std::map<std::string, const Node*>& index, const std::string& key) {
    const auto it = index.find(key);
    return key.empty() || it == index.end() ? nullptr : it->second;
  }
  std::map<std::string, const Node*> by_id_, by_name_, by_addr_;
};

const ServiceStatus* report(const Node& node, const std::string& service) {
  const auto it = node.status.services.find(service);
  return it == node.status.services.end() ? nullptr : &it->second;
}

// Names of strangers come from machines: never into a command that someone may copy.
std::string stranger(const Member& m) {
  const std::string& said = m.name.empty() ? m.id : m.name;
  return (is_name(said) ? said : shown(said)) + " (unknown here)";
}

// Whose member list counts: a node that was verified and serves, else any that is commissioned.
// What a node reports that is not commissioned (a failed attempt) may be a cluster of its own.
int rank(const Node& node) {
  const Lifecycle l = node.status.lifecycle;
  const bool serves = l == Lifecycle::kAllocated || l == Lifecycle::kMaintenance;
  return serves && node.status.applied ? 2 : is_commissioned(node) ? 1 : 0;
}

// The member list to believe: of nodes that answer before others (what a node said before it
// disappeared may be long untrue), of those a healthy report before others, of those the freshest.
const ServiceStatus* freshest(const Snapshot& snapshot, const std::string& service) {
  const ServiceStatus* best = nullptr;
  std::tuple<int, bool, bool, Time> best_key;
  for (const auto& [id, node] : snapshot.nodes) {
    const ServiceStatus* s = report(node, service);
    if (!s || rank(node) == 0 || std::none_of(s->members.begin(), s->members.end(), votes))
      continue;
    const bool present = node.status.presence != Presence::kDisappeared;
    const std::tuple<int, bool, bool, Time> key(rank(node), present, s->healthy, s->observed);
    if (best && key <= best_key) continue;
    best = s;
    best_key = key;
  }
  return best;
}

bool answers(const Node& node, const std::string& service, Time seen) {
  if (node.status.presence == Presence::kDisappeared) return false;
  const ServiceStatus* own = report(node, service);
  return !own || own->healthy || own->observed <= seen;
}

}  // namespace

Count View::count() const {
  const auto reachable = std::count_if(members.begin(), members.end(),
                                       [](const SeenMember& m) { return m.reachable; });
  return {static_cast<int>(members.size()), static_cast<int>(reachable)};
}

const SeenMember* View::of(std::string_view node_id) const {
  for (const SeenMember& m : members) {
    if (!node_id.empty() && m.node == node_id) return &m;
  }
  return nullptr;
}

std::string View::leader() const {
  for (const SeenMember& m : members) {
    if (m.leader) return m.name;
  }
  return "";
}

std::vector<std::string> View::missing() const {
  std::vector<std::string> out;
  for (const SeenMember& m : members) {
    if (!m.reachable) out.push_back(m.name);
  }
  return out;
}

View observe(const Snapshot& snapshot, const std::string& service,
             const std::function<bool(const Node&)>& is_manager) {
  View view;
  view.service = service;
  if (const ServiceStatus* seen = freshest(snapshot, service)) {
    view.observed = seen->observed;
    const Matcher matcher(snapshot, service);
    for (const Member& m : seen->members) {
      if (!votes(m)) continue;
      const Node* node = matcher.match(m);
      const bool reachable = m.reachable && (!node || answers(*node, service, seen->observed));
      view.members.push_back({node ? node->id : "", node ? node->name : stranger(m), m.id,
                              reachable, m.leader && reachable});
    }
  } else {
    for (const auto& [id, node] : snapshot.nodes) {
      if (!node.status.applied || !is_commissioned(node) || !is_manager(node)) continue;
      const auto& services = node.status.applied->services;
      if (std::find(services.begin(), services.end(), service) == services.end()) continue;
      const ServiceStatus* own = report(node, service);
      view.members.push_back(
          {id, node.name, own ? own->member_id : "",
           node.status.presence != Presence::kDisappeared && (!own || own->healthy), false});
    }
  }
  std::sort(view.members.begin(), view.members.end(), [](const SeenMember& a, const SeenMember& b) {
    return std::tie(a.name, a.id) < std::tie(b.name, b.id);
  });
  return view;
}

}  // namespace clusterctl::fleet
