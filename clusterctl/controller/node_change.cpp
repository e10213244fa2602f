#include "controller/node_change.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/operation.h"

namespace clusterctl::controller {

Status apply(fleet::Node& node, const job::NodeChange& change, Time now) {
  if (change.event) {
    if (auto done = fleet::apply_event(node, *change.event); !done) return done;
  }
  fleet::NodeSpec spec = node.spec;
  if (change.host_key && spec.ssh.host_key.empty()) spec.ssh.host_key = *change.host_key;
  fleet::set_spec(node, std::move(spec));

  if (change.clear_services) {
    std::vector<std::string> services;
    for (const auto& [name, status] : node.status.services) services.push_back(name);
    for (const std::string& name : services) fleet::forget_service(node, name);
  }
  for (const auto& [name, status] : change.services) fleet::record_service(node, name, status);
  if (change.applied && *change.applied) fleet::set_applied(node, **change.applied);
  if (change.applied && !*change.applied) fleet::clear_applied(node);
  if (change.applied_availability)
    fleet::set_applied_availability(node, *change.applied_availability);
  if (change.maintenance) fleet::set_maintenance(node, *change.maintenance);
  if (change.hardware) fleet::record_hardware(node, *change.hardware);
  if (change.presence) fleet::set_presence(node, *change.presence, now);
  for (const std::string& type : change.clear_conditions) fleet::clear_condition(node, type);
  for (const fleet::Condition& c : change.set_conditions) {
    fleet::set_condition(node, c.type, c.reason, c.job, now);
  }
  fleet::clear_fences(node, change.fenced);
  if (change.needs_fence) fleet::add_fence(node, *change.needs_fence);
  return {};
}

}  // namespace clusterctl::controller
