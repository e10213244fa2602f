// Variables of a node, low to high: catalog defaults < globals < host group < node < request.
// Shallow: a later value replaces an earlier one.
#include <algorithm>

#include "base/digest.h"
#include "plan/drift.h"
#include "plan/plan.h"

namespace clusterctl::plan {
namespace {

void lay_over(Json& under, const Json& over) {
  if (!over.is_object()) return;
  for (const auto& [name, value] : over.items()) under[name] = value;
}

}  // namespace

Json operator_vars(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                   const fleet::Node& node, std::string_view host_group) {
  Json vars = Json::object();
  lay_over(vars, snapshot.globals);
  if (const catalog::HostGroup* group = catalog.host_group(host_group)) lay_over(vars, group->vars);
  lay_over(vars, node.spec.vars);
  for (const auto& [name, version] : node.spec.versions) {
    const catalog::Service* service = catalog.service(name);
    if (service && !service->version_variable.empty()) vars[service->version_variable] = version;
  }
  return vars;
}

Json effective_vars(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                    const fleet::Node& node, std::string_view host_group,
                    const Json& request_vars) {
  Json vars = catalog.defaults().is_object() ? catalog.defaults() : Json::object();
  lay_over(vars, operator_vars(snapshot, catalog, node, host_group));
  lay_over(vars, request_vars);
  return vars;
}

std::string vars_fingerprint(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                             const fleet::Node& node, std::string_view host_group) {
  return sha256_hex(dump_json(operator_vars(snapshot, catalog, node, host_group)) + "\n" +
                    catalog.version());
}

std::optional<fleet::Role> role_of(const catalog::Catalog& catalog, const fleet::Node& node) {
  const std::string& group =
      node.status.applied ? node.status.applied->host_group : node.spec.host_group;
  if (group.empty()) return std::nullopt;
  const auto& given =
      node.status.applied ? node.status.applied->capabilities : node.spec.capabilities;
  return catalog.role(group, catalog.capabilities_for(group, given));
}

std::vector<fleet::View> observe_members(const fleet::Snapshot& snapshot,
                                         const catalog::Catalog& catalog) {
  std::vector<fleet::View> out;
  for (const std::string& service : catalog.quorum_services()) {
    // What a capability brings has its members wherever it is, everything else on the managers.
    const bool by_capability = !catalog.service(service)->on.capabilities.empty();
    out.push_back(fleet::observe(snapshot, service, [&](const fleet::Node& node) {
      return by_capability || role_of(catalog, node) == fleet::Role::kManager;
    }));
  }
  return out;
}

}  // namespace clusterctl::plan
