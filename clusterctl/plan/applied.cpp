// What a node carries when work on it has succeeded.
#include <algorithm>
#include <set>

#include "plan/drift.h"
#include "plan/plan.h"

namespace clusterctl::plan {
namespace {

using Names = std::set<std::string>;

// The services that an update of this node was narrowed to; empty: all of them.
Names narrowed_to(const Plan& plan, const fleet::Node& node) {
  for (const Stage& stage : plan.stages) {
    if (stage.name == "site" &&
        std::find(stage.nodes.begin(), stage.nodes.end(), node.id) != stage.nodes.end())
      return {stage.vars.only_services.begin(), stage.vars.only_services.end()};
  }
  return {};
}

// `from`, except for the keys that belong to the services `only`: those are as in `to`.
template <typename OwnerOf>
std::map<std::string, std::string> merged(std::map<std::string, std::string> from,
                                          const std::map<std::string, std::string>& to,
                                          const Names& only, OwnerOf owner_of) {
  std::erase_if(from, [&](const auto& entry) { return only.count(owner_of(entry.first)) != 0; });
  for (const auto& [key, value] : to) {
    if (only.count(owner_of(key))) from[key] = value;
  }
  return from;
}

// Only these services were converged: what the others were last converged with stays on record, and
// so does what belongs to no single service.
fleet::Applied partly(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                      const fleet::Node& node, fleet::Applied out, const Names& only) {
  const fleet::Applied& before = *node.status.applied;
  const auto itself = [](const std::string& service) { return service; };
  out.versions = merged(before.versions, out.versions, only, itself);
  out.vars_fingerprint = before.vars_fingerprint;
  if (before.catalog.empty()) return out;  // an older record, which tells services not apart
  std::map<std::string, std::string> entries;
  for (const std::string& name : out.services) {
    if (const catalog::Service* service = catalog.service(name))
      entries[name] = entry_digest(*service);
  }
  out.catalog = merged(before.catalog, entries, only, itself);
  if (before.vars_fingerprint.empty()) return out;  // not known what it was converged with
  const auto now = variable_digests(snapshot, catalog, node, out.host_group);
  out.vars = merged(before.vars, now, only,
                    [&](const std::string& variable) { return owner_of(catalog, variable); });
  if (out.vars == now && out.catalog == entries)
    out.vars_fingerprint = vars_fingerprint(snapshot, catalog, node, out.host_group);
  return out;
}

}  // namespace

fleet::Applied applied_after(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                             const Plan& plan, const fleet::Node& node) {
  fleet::Applied out;
  out.host_group = node.spec.host_group;
  out.capabilities = node.spec.capabilities;
  // A change that waits behind this work is already wanted, and not yet made.
  const auto part = plan.parts.find(node.id);
  const bool joins = (part == plan.parts.end() ? plan.kind : part->second) == "commission";
  out.availability = joins ? node.spec.availability : last_availability(node);
  if (!joins && node.status.applied) {
    out.host_group = node.status.applied->host_group;
    out.capabilities = node.status.applied->capabilities;
  }
  if (const auto change = plan.changes.find(node.id); change != plan.changes.end()) {
    out.host_group = change->second.host_group;
    out.capabilities = change->second.capabilities;
    if (joins) out.availability = change->second.availability;
  }
  out.capabilities = catalog.capabilities_for(out.host_group, out.capabilities);
  out.versions = node.spec.versions;
  for (const Stage& stage : plan.stages) {
    // A later batch names this node once more, as a peer, with what it carried before.
    const bool target =
        std::find(stage.nodes.begin(), stage.nodes.end(), node.id) != stage.nodes.end();
    if (stage.name != "verify" || !target) continue;
    if (const auto it = stage.services.find(node.id); it != stage.services.end())
      out.services = it->second;
  }
  if (const auto only = narrowed_to(plan, node); !only.empty() && node.status.applied)
    return partly(snapshot, catalog, node, std::move(out), only);
  out.vars_fingerprint = vars_fingerprint(snapshot, catalog, node, out.host_group);
  out.vars = variable_digests(snapshot, catalog, node, out.host_group);
  for (const std::string& name : out.services) {
    if (const catalog::Service* service = catalog.service(name))
      out.catalog[name] = entry_digest(*service);
  }
  return out;
}

}  // namespace clusterctl::plan
