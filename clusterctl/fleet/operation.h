// Changes of a node record as pure functions: the controller applies them to a copy and commits it.
// They keep the two versions right: `generation` grows with spec, `resource_version` with spec,
// lifecycle, conditions, applied and services; presence, last_seen, hardware and the time of an
// observation change neither. Each says whether anything changed. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "fleet/conditions.h"
#include "fleet/lifecycle.h"
#include "fleet/node_json.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

// kConflict "name_taken" or "addr_taken" naming the other node. `except`: id of the node that is
// being changed.
Status check_unique(const Snapshot& snapshot, std::string_view name, const std::string& addr,
                    std::string_view except = "");

// The record of a new node; acceptance follows the cluster's policy when the request named none.
Result<Node> add_node(const Snapshot& snapshot, const NewNode& request, std::string id, Time now);
// kConflict "commissioned" while it is in service or busy.
Status check_removable(const Node& node);

bool set_spec(Node& node, NodeSpec spec);
// What PATCH does: refuses what needs a job, an address that is taken, and otherwise changes spec.
Result<bool> patch_node(const Snapshot& snapshot, Node& node, const Json& body, Time now);

// Takes the event through the table of lifecycle.h. `previous` remembers where it came from.
Status apply_event(Node& node, Event event);

bool set_applied(Node& node, Applied applied);  // after verify; clears Drifted, Failed,
                                                // Interrupted, NeedsVerification, Dirty, NotCleaned
// After a change of the availability alone was verified.
bool set_applied_availability(Node& node, Availability availability);
// nullopt: it is over.
bool set_maintenance(Node& node, std::optional<Maintenance> maintenance);
// The node carries nothing any more: applied and services are forgotten, with their recorded ids.
bool clear_applied(Node& node);
// A fact just seen. An unhealthy fact without member_id keeps the recorded one: it is needed to
// remove the member later.
bool record_service(Node& node, const std::string& service, ServiceStatus status);
bool forget_service(Node& node, const std::string& service);
bool record_hardware(Node& node, Hardware hardware);
// A node in service that comes back after an absence needs a verification: nobody knows what
// happened to it meanwhile.
bool set_presence(Node& node, Presence presence, Time now);
bool set_condition(Node& node, std::string_view type, std::string_view reason, std::string_view job,
                   Time now);
bool clear_condition(Node& node, std::string_view type);
// A run that may have left processes there; the oldest are forgotten beyond a limit.
bool add_fence(Node& node, const std::string& run);
bool clear_fences(Node& node, const std::vector<std::string>& runs);

}  // namespace clusterctl::fleet
