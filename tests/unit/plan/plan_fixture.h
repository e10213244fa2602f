// A catalog with the services of the lab and a fleet to plan on.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fleet_builder.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::plan {

inline catalog::Catalog test_catalog() {
  return *catalog::Catalog::parse_text(R"(
host_groups:
  service-master: {manager: true, capabilities: [ucp-controller]}
  service-worker: {manager: false, capabilities: [service-worker, can-run-user-containers], vars: {from_group: 1, level: group}}
defaults: {scheduler_provider: swarm-mode, vip_provider: ucarp}
services:
  base: {on: all, memory: 256M}
  docker: {on: all, needs: [base], version: docker_version, memory: 256M, disrupts: node}
  etcd: {on: {role: manager}, needs: [base], version: etcd_version, quorum: members, memory: 256M, ports: {etcd_client_port: 2379, etcd_peer_port: 2380}}
  ucarp: {on: {role: manager}, when: service_vip, needs: [base], hands_over: true}
  swarm: {on: all, when: {scheduler_provider: swarm-mode}, needs: [docker], quorum: members, schedules: true, memory: 128M, ports: {swarm_port: 2377}}
  dtr: {on: {capability: [dtr-controller, dtr-replica]}, needs: [docker], forbids: {service: etcd}}
)",
                                       "test catalog");
}

// A request; what is empty is left out.
inline Json commission(std::vector<std::string> nodes, const std::string& group = "",
                       std::vector<std::string> capabilities = {}) {
  Json out{{"kind", "commission"}};
  if (!nodes.empty()) out["nodes"] = std::move(nodes);
  if (!group.empty()) out["host_group"] = group;
  if (!capabilities.empty()) out["capabilities"] = std::move(capabilities);
  return out;
}

class PlanTest : public testing::Test {
 protected:
  PlanTest() : catalog_(test_catalog()) {
    fleet_.snapshot().globals = {{"service_vip", "10.0.0.200"}};
  }

  Request request(const Json& body) {
    const auto r = parse_request(body);
    EXPECT_TRUE(r) << r.error().line();
    return r.value_or(Request{});
  }
  Result<Plan> plan(const Json& body) {
    return make_plan(fleet_.snapshot(), catalog_, request(body));
  }
  Plan accepted(const Json& body) {
    auto p = plan(body);
    EXPECT_TRUE(p) << dump(p);
    return p.value_or(Plan{});
  }
  // Codes of all problems, in order; empty when it was accepted.
  std::vector<std::string> refused(const Json& body) {
    const auto p = plan(body);
    std::vector<std::string> out;
    if (p) return out;
    for (const Problem& problem : p.error().problems) {
      out.push_back(problem.code);
      EXPECT_FALSE(problem.message.empty());
      EXPECT_EQ(problem.message.find('\n'), std::string::npos);
    }
    EXPECT_EQ(p.error().problems.empty(), false);
    return out;
  }
  static std::string dump(const Result<Plan>& p) {
    if (p) return "accepted";
    std::string out = p.error().line();
    for (const Problem& problem : p.error().problems)
      out += "\n  " + problem.code + ": " + problem.message + " (" + problem.hint + ")";
    return out;
  }
  void three_managers_one_worker() {
    for (const char* name : {"m1", "m2", "m3"}) fleet_.manager(name);
    fleet_.worker("w1");
    fleet_.report();
  }
  std::vector<std::string> names(const std::vector<std::string>& ids) {
    std::vector<std::string> out;
    for (const std::string& id : ids) out.push_back(fleet_.snapshot().nodes.at(id).name);
    return out;
  }
  // "check m1,m2; site m1,m2"
  std::string stages(const Plan& p) {
    std::string out;
    for (const Stage& s : p.stages) {
      EXPECT_EQ(s.playbook, s.in_service             ? "handover.yml"
                            : s.availability.empty() ? s.name + ".yml"
                                                     : "availability.yml");
      out += (out.empty() ? "" : "; ") + s.name;
      for (size_t i = 0; i < s.nodes.size(); ++i) out += (i ? "," : " ") + names(s.nodes)[i];
    }
    return out;
  }
  static const Stage* stage(const Plan& p, const std::string& name) {
    for (const Stage& s : p.stages) {
      if (s.name == name) return &s;
    }
    return nullptr;
  }
  using Codes = std::vector<std::string>;
  using Names = std::vector<std::string>;

  fleet::FleetBuilder fleet_;
  catalog::Catalog catalog_;
};

}  // namespace clusterctl::plan
