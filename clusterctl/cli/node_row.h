// One node of an answer as the words that lists and details show. Pure; any thread.
#pragma once

#include <string>

#include "base/json.h"

namespace clusterctl::cli {

// "applied→wanted" while they differ, else the wanted one.
std::string shown_group(const Json& node);
std::string shown_capabilities(const Json& node);
std::string shown_availability(const Json& node);
// "healthy", or in one line what is not: conditions, unhealthy services, disappeared.
// Why, for whom, since and until when it is out of service; "" when nobody asked for it.
std::string shown_maintenance(const Json& node);
std::string shown_health(const Json& node);
// "manager", "manager (leader)", "worker".
std::string shown_role(const Json& node, const std::string& leader);
// "etcd 3.4.23, swarm 20.10.24" without `except`.
std::string shown_services(const Json& node, const std::string& except);
// Name of the cluster's leader by the freshest observation of these nodes (swarm or UCP, else
// etcd); "" when nobody knows.
std::string leader_of(const Json& nodes);

}  // namespace clusterctl::cli
