// What the services are: read once from playbooks/catalog.yml, then immutable. Pure, any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "fleet/node.h"

namespace clusterctl::catalog {

struct HostGroup {
  std::string name;
  bool manager = false;
  std::vector<std::string> capabilities;  // the default when none are given
  Json vars = Json::object();             // variables of the group, below node variables
};

// Where a service is `on`. Exactly one kind is set.
struct Placement {
  bool all = false;
  std::optional<fleet::Role> role;
  std::vector<std::string> host_groups;
  std::vector<std::string> capabilities;
};

struct Service {
  std::string name;
  Placement on;
  std::map<std::string, std::optional<std::string>> when;  // variable -> value; nullopt: defined and not empty
  std::vector<std::string> needs;
  std::string version_variable;
  std::string upgrade = "node";
  bool quorum_members = false;
  std::string disrupts = "nothing";           // "nothing", "service", "node"
  std::map<std::string, int> ports;           // variable (or "port/proto" name) -> default port
  int64_t memory_mb = 0;
  std::vector<std::string> forbids;           // services that may not be on the same node
};

class Catalog {
 public:
  // Refuses unknown keys, cycles in `needs`, unknown names; errors carry file:line where they can.
  static Result<Catalog> read(const fs::path& file);
  static Result<Catalog> parse(const Json& document, std::string_view what);

  const std::vector<Service>& services() const { return services_; }  // provisioning order
  const Service* service(std::string_view name) const;
  const HostGroup* host_group(std::string_view name) const;
  std::vector<std::string> host_group_names() const;
  const Json& defaults() const { return defaults_; }  // values of `when` variables nobody set
  const std::string& version() const { return version_; }  // digest of the document

  // Role of a node with these: manager = its group says manager and no dtr-* capability.
  fleet::Role role(std::string_view host_group, const std::vector<std::string>& capabilities) const;
  // Services of a node in provisioning order. `vars` are its effective variables.
  std::vector<std::string> services_for(std::string_view host_group, const std::vector<std::string>& capabilities,
                                        const Json& vars) const;

 private:
  std::map<std::string, HostGroup> groups_;
  std::vector<Service> services_;
  Json defaults_ = Json::object();
  std::string version_;
};

}  // namespace clusterctl::catalog
