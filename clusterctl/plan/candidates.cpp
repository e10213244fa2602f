#include "plan/candidates.h"

#include <charconv>

#include "fleet/placement_registry.h"

namespace clusterctl::plan {
namespace {

// The port a variable names; 0 when it holds none.
int port_of(const Json& vars, const std::string& variable, int fallback) {
  const auto it = vars.find(variable);
  if (variable.empty() || it == vars.end() || it->is_null()) return fallback;
  int64_t port = 0;
  if (it->is_number_integer()) {
    port = it->get<int64_t>();
  } else if (it->is_string()) {
    const std::string& text = it->get_ref<const std::string&>();
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (ec != std::errc() || end != text.data() + text.size()) port = 0;
  }
  return port >= 1 && port <= 65535 ? static_cast<int>(port) : 0;
}

}  // namespace

void add_catalog_facts(const catalog::Catalog& catalog, fleet::Candidate& c) {
  for (const std::string& name : c.services) {
    const catalog::Service& s = *catalog.service(name);
    for (const std::string& need : catalog.needs_of(s, c.vars)) c.needs.emplace_back(name, need);
    for (const std::string& other : s.forbids) c.forbids.emplace_back(name, other);
    for (const auto& [variable, port] : s.ports) {
      const auto only = s.port_roles.find(variable);
      if (only == s.port_roles.end() || only->second == c.role)
        c.ports.push_back({name, variable, port_of(c.vars, variable, port)});
    }
    if (!s.version_variable.empty()) c.version_variables.emplace_back(name, s.version_variable);
    c.memory_mb += s.memory_mb;
  }
  for (const auto& [name, version] : c.node->spec.versions) {
    const catalog::Service* s = catalog.service(name);
    if (!s || s->version_variable.empty()) c.unknown_services.push_back(name);
  }
}

fleet::Placement placement_for(const Context& context,
                               const std::vector<fleet::Candidate>& candidates,
                               const NodeList& staying, const Node* peer) {
  const catalog::Catalog& catalog = context.catalog();
  fleet::Placement placement{&context.snapshot(), candidates, staying, peer};
  placement.own_host_meant = context.request().controller_host;
  const auto members = catalog.quorum_services();
  placement.member_services = {members.begin(), members.end()};
  placement.registry_services = catalog.services_of_capabilities("dtr-");
  for (const catalog::Service& s : catalog.services()) {
    if (s.when.count("service_vip")) placement.vip_services.insert(s.name);
  }
  std::set<std::string> targets;
  for (const fleet::Candidate& c : candidates) targets.insert(c.node->id);
  for (const Node* node : context.commissioned(targets)) {
    if (!node->status.applied) continue;
    const bool matters = fleet::is_registry(node->status.applied->capabilities) ||
                         role_of(catalog, *node) == fleet::Role::kManager;
    if (matters) {
      placement.standing.push_back({node, effective_vars(context.snapshot(), catalog, *node,
                                                         node->status.applied->host_group)});
    }
  }
  return placement;
}

}  // namespace clusterctl::plan
