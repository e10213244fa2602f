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
  std::map<std::string, std::optional<std::string>>
      when;  // variable -> value; nullopt: defined and not empty
  std::vector<std::string> needs;
  // Further needs when a variable has a value: variable -> value -> service.
  std::map<std::string, std::map<std::string, std::string>> needs_when;
  std::string version_variable;
  std::string upgrade = "node";
  bool quorum_members = false;
  std::string disrupts = "nothing";  // "nothing", "service", "node"
  bool hands_over = false;           // it moves to another node on request (door `handover`)
  bool schedules = false;            // it keeps the availability of nodes (door `availability`)
  std::map<std::string, int> ports;  // variable (or "port/proto" name) -> default port
  std::map<std::string, fleet::Role> port_roles;  // ports that only nodes of this role open
  int64_t memory_mb = 0;
  std::vector<std::string> forbids;  // services that may not be on the same node
};

class Catalog {
 public:
  // Refuses unknown keys, `needs` that do not stand before, unknown names; errors name the file and
  // the entry, or file:line where the YAML itself is wrong.
  static Result<Catalog> read(const fs::path& file);
  static Result<Catalog> parse_text(std::string_view yaml, std::string_view what);
  // `order`: names of the services in provisioning order, which a JSON object has lost; empty: what
  // is needed first, else by name.
  static Result<Catalog> parse(const Json& document, std::string_view what,
                               std::vector<std::string> order = {});

  const std::vector<Service>& services() const { return services_; }  // provisioning order
  const Service* service(std::string_view name) const;
  const HostGroup* host_group(std::string_view name) const;
  std::vector<std::string> host_group_names() const;
  const Json& defaults() const { return defaults_; }       // values of `when` variables nobody set
  const std::string& version() const { return version_; }  // digest of the document

  // What a node of the group may carry: what was given, or the group's default when nothing was.
  // The functions below take the result.
  std::vector<std::string> capabilities_for(std::string_view host_group,
                                            const std::vector<std::string>& given) const;
  // Role of a node with these: manager = its group says manager and no dtr-* capability.
  fleet::Role role(std::string_view host_group, const std::vector<std::string>& capabilities) const;
  // Services of a node in provisioning order. `vars` are its effective variables; `role` when it is
  // not the one that follows.
  std::vector<std::string> services_for(std::string_view host_group,
                                        const std::vector<std::string>& capabilities,
                                        const Json& vars,
                                        std::optional<fleet::Role> role = std::nullopt) const;
  // Names of the services whose members form majorities, in provisioning order.
  std::vector<std::string> quorum_services() const;
  // Names of the services that a capability beginning with `prefix` brings, in provisioning order.
  std::vector<std::string> services_of_capabilities(std::string_view prefix) const;
  // What `service` needs with these variables: `needs` and whatever of `needs_when` applies.
  std::vector<std::string> needs_of(const Service& service, const Json& vars) const;

 private:
  friend class Reader;
  std::map<std::string, HostGroup> groups_;
  std::vector<Service> services_;
  Json defaults_ = Json::object();
  std::string version_;
};

}  // namespace clusterctl::catalog
