// A fleet on UCP with a registry, as the catalog of a site describes it whose roles are not here
// yet.
#pragma once

#include "plan_fixture.h"

namespace clusterctl::plan {

inline catalog::Catalog ucp_catalog() {
  return *catalog::Catalog::parse_text(R"(
host_groups:
  service-master: {manager: true, capabilities: [ucp-controller]}
  service-worker: {manager: false, capabilities: [service-worker, can-run-user-containers]}
defaults: {scheduler_provider: ucp-swarm, vip_provider: ucarp}
services:
  base: {on: all, memory: 256M}
  docker: {on: all, needs: [base], version: docker_version, memory: 256M, disrupts: node}
  etcd: {on: {role: manager}, needs: [base], version: etcd_version, quorum: members, memory: 256M, ports: {etcd_client_port: 2379, etcd_peer_port: 2380}}
  ucarp: {on: {role: manager}, when: {service_vip: null, vip_provider: ucarp}, needs: [base]}
  ucp: {on: all, when: {scheduler_provider: ucp-swarm}, needs: [docker], version: ucp_version, upgrade: cluster-then-workers, quorum: members, schedules: true, ports: {ucp_controller_port: {port: 443, role: manager}}, memory: 2G}
  contiv_network: {on: {capability: [can-run-user-containers]}, when: contiv_network_version, needs: [docker]}
  volplugin: {on: {capability: [can-run-user-containers]}, when: volplugin_version, needs: [docker, etcd]}
  dtr: {on: {capability: [dtr-controller, dtr-replica]}, needs: [ucp], needs_when: {dtr_storage: {volplugin: volplugin}}, version: dtr_version, upgrade: cluster, quorum: members, memory: 4G, ports: {dtr_https_port: 443, dtr_http_port: 80}, forbids: {service: contiv_network}}
)",
                                       "ucp catalog");
}

// Managers, workers and registry nodes that are there, and what they report.
class UcpFleet {
 public:
  UcpFleet() { fleet.snapshot().globals = {{"service_vip", "10.0.0.200"}}; }

  fleet::Node& manager(const std::string& name) {
    fleet::Node& node = fleet.allocated(name, "service-master", {"ucp-controller"},
                                        {"base", "docker", "etcd", "ucarp", "ucp"});
    report();
    return node;
  }
  fleet::Node& registry(const std::string& name, const std::string& capability) {
    fleet::Node& node =
        fleet.allocated(name, "service-worker", {capability}, {"base", "docker", "ucp", "dtr"});
    report();
    return node;
  }
  fleet::Node& operator[](const std::string& name) { return fleet[name]; }

  // Everybody says who the members are: managers of etcd and ucp, registry nodes of dtr.
  void report() {
    for (const char* service : {"etcd", "ucp", "dtr"}) {
      std::vector<fleet::Member> members;
      for (const auto& [id, node] : fleet.snapshot().nodes) {
        if (carries(node, service)) {
          members.push_back({std::string(service) + "-" + node.name, node.name, node.spec.addr,
                             "member", true, members.empty()});
        }
      }
      for (auto& [id, node] : fleet.snapshot().nodes) {
        if (!carries(node, service)) continue;
        fleet::ServiceStatus& s = node.status.services[service];
        s = {};
        s.healthy = true;
        s.member_id = std::string(service) + "-" + node.name;
        s.members = members;
        s.observed = fleet::at(100);
      }
    }
  }

  fleet::FleetBuilder fleet;

 private:
  static bool carries(const fleet::Node& node, const std::string& service) {
    if (!node.status.applied) return false;
    const bool worker = node.status.applied->host_group == "service-worker";
    const auto& there = node.status.applied->services;
    return std::find(there.begin(), there.end(), service) != there.end() &&
           (service == "dtr" || !worker);
  }
};

}  // namespace clusterctl::plan
