// Stays out of service: maintenance-enter, maintenance-exit, reboot. What the beginning and the end
// of such a job mean for a node's record. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "fleet/snapshot.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

bool is_stay(std::string_view kind);

// The record of the stay, as the batch of this node begins: what was there before is kept, so that
// the way back leads to what the node had before the first of them.
fleet::Maintenance begin_stay(const Job& job, const fleet::Node& node, Time now);

// What of the node's side of a handover holds: true when its services were sent away by an earlier
// job than this one.
bool stands_aside(const Job& job, const fleet::Node& node);

// A node that may have been rebooted and was not seen in order afterwards stays out of service,
// with its record: nothing is put back.
bool keeps_out(const Job& job, const NodeOutcome& n);

// What becomes of a node of such a job; only for outcomes that are final.
NodeChange stay_change(const Job& job, const NodeOutcome& n, const fleet::Node& node, Time now);

}  // namespace clusterctl::job
