// Writes what a run gives to Ansible: inventory, request variables, known host keys, argv,
// environment (docs/run-contract.md). Pure text making: the run room puts it on disk. Any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "fleet/node.h"

namespace clusterctl::ansible {

struct Host {
  std::string id, name, addr;
  fleet::Ssh ssh;
  bool target = false;  // else a commissioned manager as data and delegate
  std::string host_group;
  fleet::Role role = fleet::Role::kWorker;
  fleet::Availability availability = fleet::Availability::kActive;
  std::optional<bool> in_service;  // of a handover: may services that move come here?
  std::vector<std::string> services;
  std::map<std::string, std::string> recorded;  // service -> member id
  Json vars = Json::object();                   // merged operator variables, secrets resolved
};

struct LostMember {
  std::string name, addr;
  std::map<std::string, std::string> ids;
};

struct RunInput {
  std::string run_id;
  std::string cluster_name;
  std::vector<Host> hosts;  // targets in the order of work, then peers
  std::string initiator, peer, endpoint;
  std::vector<std::string> managers, leaving, only_services, fence_runs;
  std::vector<LostMember> lost;
  std::string cleanup_level = "state";
  std::optional<int> drain_deadline;  // seconds; nullopt: the role's default
  std::string order;                  // the same for a job and those that go on from it
  std::string pki_dir;
  Json request_vars = Json::object();
  // Daemon settings
  std::string default_user;                // when a node names none
  std::string private_key;                 // path, or empty for the agent and defaults of ssh
  std::string run_dir;                     // absolute
  std::vector<std::string> secret_values;  // for the shim's redaction; never in the inventory
                                           // unless a variable holds them
};

struct RunFiles {
  std::string inventory;    // JSON
  std::string vars;         // JSON, empty text when there are no request variables
  std::string known_hosts;  // lines "<node id> ssh-ed25519 AAAA…"
};
// A value with every text in it marked as data, so that Ansible evaluates no template.
Json unsafe_value(const Json& value);

// Refuses (kInvalid) names, addresses, users, jump hosts, keys and variables that could become
// options, commands or template text.
Result<RunFiles> render(const RunInput& input);

// "ansible_*" names other than ansible_python_interpreter, names Ansible or the run contract own,
// and names that are no identifiers: an Error naming the variable. For node, global, group and
// request variables at every entry.
Status check_var_names(const Json& vars, std::string_view what);

// Host keys that ssh learnt during a run, by node id, from the run's known_hosts.
std::map<std::string, std::string> learnt_host_keys(std::string_view known_hosts);

}  // namespace clusterctl::ansible
