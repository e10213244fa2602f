// Nodes and jobs as contiv's clients read them. Pure, any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/node.h"
#include "job/job.h"

namespace clusterctl::api::compat {

// The last work on a commissioned node failed. There that is "Unallocated", whether it left the
// node out of service or as it was: who waits for the end of an update reads failure, not success.
// It can be updated again, which is what commissioning it means then.
bool is_broken(const fleet::Node& node);

// What a node is busy with, by id: the status that the jobs that have not ended give those that
// they still have before them. There it is set before the request is answered.
using Busy = std::map<std::string, std::string_view>;
Busy busy_nodes(const std::map<std::string, std::shared_ptr<const job::Job>>& jobs);

std::string_view status_word(const fleet::Node& node, const Busy& busy);

// {"monitoring_state", "inventory_state", "configuration_state"}.
Json node_view(const fleet::Node& node, const Busy& busy);

// "Queued", "Running", "Complete", "Errored".
std::string_view job_status(job::State state);

// {"desc", "task", "status", "error", "logs"}; `task`: what is being done now.
Json job_view(const job::Job& job, std::string task, const std::vector<std::string>& logs);

// By which name a machine is known that a monitor reports with this label and serial number:
// "label-serial", of what a name may hold.
std::string node_name(std::string_view label, std::string_view serial);

}  // namespace clusterctl::api::compat
