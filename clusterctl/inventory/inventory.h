// The operator's Ansible inventory as node drafts, and back. Runs on the client side; everything
// read is checked before anything is sent, and all problems are reported together. Reads files,
// keeps no state; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace clusterctl::inventory {

struct NodeDraft {
  std::string name;
  Json spec = Json::object();  // only what the inventory says, in the shape of a node's `spec`
};

struct Inventory {
  std::vector<NodeDraft> nodes;  // sorted by name
  Json globals = Json::object();
  std::vector<std::string> notes;  // what was left out or may surprise, one line each
};

// `path` is a YAML file or a folder of them; `group_vars` and `host_vars` beside the file, or in
// the folder, are read as Ansible would. `host_groups` tells which groups are host groups;
// variables of other groups go to their hosts. Variables of `all` become globals, connection
// settings (ansible_host, ansible_port, ansible_user, clusterctl_ssh_host_key, clusterctl_ssh_jump)
// go to `spec`. Plain scalars are those of Ansible (base/yaml_scalars.h).
Result<Inventory> read_inventory(const fs::path& path, const std::vector<std::string>& host_groups);

// The same from what Ansible makes of an inventory of any kind: the answers of
// `ansible-inventory --list --export` and `ansible-inventory --list`, as texts. `shown` names it.
Result<Inventory> inventory_of_ansible(const std::string& exported, const std::string& listed,
                                       const std::string& shown,
                                       const std::vector<std::string>& host_groups);

// Nodes (as the REST interface shows them) and globals as an Ansible inventory that read_inventory
// understands.
Json to_ansible_inventory(const Json& nodes, const Json& globals);

// YAML that every parser of 1.1 and 1.2 reads as the same values: keys sorted, text quoted when in
// doubt.
std::string to_yaml(const Json& value);

}  // namespace clusterctl::inventory
