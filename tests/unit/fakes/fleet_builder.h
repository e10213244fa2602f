// Builds snapshots for tests in a few words: nodes with a state, what was applied, what they report
// of a quorum service.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fleet/conditions.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

inline Time at(int64_t seconds) {
  return Time(std::chrono::seconds(1800000000 + seconds));
}

// A fresh node: accepted, in no group. Its id is its name padded to 12 characters.
inline Node make_node(const std::string& name, int number) {
  Node node;
  node.id = name;
  node.id.resize(12, 'x');
  node.name = name;
  node.created = at(0);
  node.spec.addr = "10.0.0." + std::to_string(number);
  return node;
}

class FleetBuilder {
 public:
  Node& add(const std::string& name, const std::string& group = "") {
    Node node = make_node(name, ++number_);
    node.spec.host_group = group;
    return snapshot_.nodes[node.id] = node;
  }
  Node& allocated(const std::string& name, const std::string& group,
                  std::vector<std::string> capabilities, std::vector<std::string> services) {
    Node& node = add(name, group);
    node.status.lifecycle = Lifecycle::kAllocated;
    node.status.presence = Presence::kDiscovered;
    Applied applied;
    applied.host_group = group;
    applied.capabilities = std::move(capabilities);
    applied.services = std::move(services);
    node.status.applied = applied;
    return node;
  }
  Node& manager(const std::string& name) {
    Node& node = allocated(name, "service-master", {"ucp-controller"},
                           {"base", "docker", "etcd", "ucarp", "swarm"});
    for (const char* service : {"etcd", "swarm"})
      node.status.services[service].member_id = std::string(service) + "-" + name;
    return node;
  }
  Node& worker(const std::string& name) {
    Node& node = allocated(name, "service-worker", {"can-run-user-containers", "service-worker"},
                           {"base", "docker", "swarm"});
    node.status.services["swarm"].member_id = "swarm-" + name;
    node.status.services["swarm"].healthy = true;
    return node;
  }
  // Every serving manager reports `service` as healthy with all of them as members; those in `down`
  // do not answer.
  void report(const std::vector<std::string>& down = {}, int64_t seconds = 100) {
    for (const char* service : {"etcd", "swarm"}) {
      std::vector<Member> members;
      for (const auto& [id, node] : snapshot_.nodes) {
        if (!is_manager(node)) continue;
        const bool up = std::find(down.begin(), down.end(), node.name) == down.end();
        members.push_back({std::string(service) + "-" + node.name, node.name, node.spec.addr,
                           "member", up, false});
      }
      for (auto& [id, node] : snapshot_.nodes) {
        if (!is_manager(node) || std::find(down.begin(), down.end(), node.name) != down.end())
          continue;
        ServiceStatus& s = node.status.services[service];
        s.healthy = true;
        s.members = members;
        s.observed = at(seconds);
      }
    }
  }
  Node& operator[](const std::string& name) {
    std::string id = name;
    id.resize(12, 'x');
    return snapshot_.nodes.at(id);
  }
  // By its name of now.
  Node& node(const std::string& name) {
    return snapshot_.nodes.at(snapshot_.by_name(name) ? snapshot_.by_name(name)->id : name);
  }
  Snapshot& snapshot() { return snapshot_; }

 private:
  static bool is_manager(const Node& n) {
    return n.status.applied && n.status.applied->host_group == "service-master";
  }
  Snapshot snapshot_;
  int number_ = 10;
};

}  // namespace clusterctl::fleet
