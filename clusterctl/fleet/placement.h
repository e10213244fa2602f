// Placement rules: what may be put on which machine. Each rule is one function in a list, with a
// code, a message, a hint and a row in docs/placement.md. Pure, any thread. What only the catalog
// knows comes in as plain data.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fleet/problems.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

struct PortUse {
  std::string service;
  std::string variable;  // moves the port; empty: fixed
  int port = 0;          // 0: the variable holds no port
};

// A node as it would be.
struct Candidate {
  const Node* node = nullptr;
  std::string host_group;
  std::vector<std::string> capabilities;  // effective
  Role role = Role::kWorker;
  bool group_manages = false;  // its group is one of managers, whatever its role
  Json vars = Json::object();  // effective
  std::vector<std::string> services;
  std::vector<std::pair<std::string, std::string>>
      needs;  // service -> a service that must be there
  std::vector<std::pair<std::string, std::string>>
      forbids;  // service -> a service that must not be on the node
  std::vector<PortUse> ports;
  std::vector<std::pair<std::string, std::string>> version_variables;  // service -> variable
  std::vector<std::string> unknown_services;  // named in spec.versions, not in the catalog
  int64_t memory_mb = 0;                      // least memory of its services together
};

// A node that is commissioned, matters for the rules and is not in the request.
struct Standing {
  const Node* node = nullptr;  // has been verified
  Json vars = Json::object();  // effective
};

struct Placement {
  const Snapshot* snapshot = nullptr;
  std::vector<Candidate> candidates;
  std::vector<const Node*> managers;    // commissioned managers that stay, not in the request
  const Node* peer = nullptr;           // one of them that answers
  std::vector<Standing> standing = {};  // those managers, and every node of the registry
  std::set<std::string> member_services = {};       // whose members form majorities
  std::set<std::string> vip_services = {};          // that hold the virtual address
  std::vector<std::string> registry_services = {};  // which a dtr-* capability brings
  bool own_host_meant = false;  // the operator said that the controller's own machine is meant
};

struct Findings {
  Problems problems;
  std::vector<Problem> warnings;
  void refuse(std::string code, const Candidate& c, std::string message, std::string hint);
  void warn(std::string code, const std::string& node, std::string message, std::string hint);
};

struct Rule {
  std::string_view name;
  std::vector<std::string_view> codes;  // of what it can say
  void (*check)(const Placement&, Findings&);
};
const std::vector<Rule>& placement_rules();

// All rules, in order.
Findings check_placement(const Placement& placement);

}  // namespace clusterctl::fleet
