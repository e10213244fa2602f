#include "job/stay.h"

#include <algorithm>

#include "fleet/conditions.h"
#include "plan/plan.h"

namespace clusterctl::job {
namespace {

using fleet::Event;

const std::vector<std::string> kBackInService{"Failed", "Interrupted", "NeedsVerification",
                                              "MaintenanceOverdue"};

bool began_it(const Job& job, const fleet::Node& node) {
  return node.status.maintenance && node.status.maintenance->job == job.id;
}

// Verified after its reboot: what broke off then was only the way back, which is gone to its end.
bool seen_in_order(const Job& job, const NodeOutcome& n) {
  return std::any_of(job.stages.begin(), job.stages.end(), [&](const StageStatus& s) {
    const bool ran = s.state == StageState::kSucceeded || s.state == StageState::kFailed;
    return s.def.name == "verify" && ran && n.stage != "verify" &&
           std::find(s.nodes.begin(), s.nodes.end(), n.node) != s.nodes.end();
  });
}

void over(NodeChange& change) {
  change.maintenance = std::optional<fleet::Maintenance>();
  change.clear_conditions.emplace_back("MaintenanceOverdue");
}

void add_marks(const Job& job, const NodeOutcome& n, NodeChange& change, Time now) {
  // Who was not reached, or was put back after a cancel, has not failed.
  if (n.state != OutcomeState::kFailed && !n.touched) return;
  change.set_conditions.push_back({"Failed", n.message, job.id, now});
  if (job.reason == "interrupted")
    change.set_conditions.push_back({"Interrupted", job.error, job.id, now});
}

// It never left, or was put back: as it was before the job.
void back_to_before(const Job& job, const NodeOutcome& n, const fleet::Node& node,
                    NodeChange& change) {
  if (!n.begun) return;
  if (!n.was_out) change.event = Event::kMaintenanceUntouched;
  if (began_it(job, node)) over(change);
}

void entered(const NodeOutcome& n, NodeChange& change) {
  change.applied_availability = fleet::Availability::kDrain;
  if (!n.was_out) change.clear_conditions = {"Failed", "Interrupted"};
}

void returned(const fleet::Node& node, NodeChange& change) {
  change.event = Event::kMaintained;
  change.applied_availability = plan::availability_before(node);
  change.maintenance = std::optional<fleet::Maintenance>();
  change.clear_conditions = kBackInService;
}

void rebooted(const Job& job, const NodeOutcome& n, const fleet::Node& node, NodeChange& change) {
  const auto& stay = node.status.maintenance;
  if (stay && stay->kind != "reboot") {  // somebody works there: it stays
    change.clear_conditions = {"NeedsVerification"};
    return;
  }
  if (!stay && node.status.lifecycle != fleet::Lifecycle::kMaintenance) return;  // said before
  if (n.was_out && began_it(job, node)) {  // it was out for another reason, and still is
    change.applied_availability = plan::availability_before(node);
    over(change);
    return;
  }
  returned(node, change);
}

void not_rebooted(const Job& job, const NodeOutcome& n, const fleet::Node& node,
                  NodeChange& change) {
  if (!keeps_out(job, n)) return back_to_before(job, n, node, change);
  change.event = Event::kMaintenanceFailed;
  const bool theirs = node.status.maintenance && node.status.maintenance->kind != "reboot";
  if (!theirs) change.applied_availability = fleet::Availability::kDrain;
}

}  // namespace

bool is_stay(std::string_view kind) {
  return kind == "maintenance-enter" || kind == "maintenance-exit" || kind == "reboot";
}

fleet::Maintenance begin_stay(const Job& job, const fleet::Node& node, Time now) {
  fleet::Maintenance out = node.status.maintenance.value_or(fleet::Maintenance{});
  const bool enters = job.kind == "maintenance-enter";
  if (!node.status.maintenance) {
    out.kind = job.kind;
    out.job = job.id;
    out.since = now;
    out.before = plan::last_availability(node);
  } else if (!enters) {
    return out;  // a reboot in the middle of a maintenance
  }
  if (enters) out.kind = job.kind;  // of a failed reboot: somebody has taken it over
  out.reason = job.request.reason;
  out.owner = job.request.owner.empty() ? job.initiator : job.request.owner;
  out.until = job.request.until;
  if (job.request.lasts) out.until = now + *job.request.lasts;
  return out;
}

bool stands_aside(const Job& job, const fleet::Node& node) {
  return node.status.maintenance && !began_it(job, node);
}

bool keeps_out(const Job& job, const NodeOutcome& n) {
  return job.kind == "reboot" && n.touched && n.state != OutcomeState::kSucceeded &&
         !seen_in_order(job, n);
}

NodeChange stay_change(const Job& job, const NodeOutcome& n, const fleet::Node& node, Time now) {
  NodeChange change;
  change.id = n.node;
  const bool done = n.state == OutcomeState::kSucceeded;
  if (job.kind == "maintenance-enter") {
    done ? entered(n, change) : back_to_before(job, n, node, change);
  } else if (job.kind == "reboot") {
    done ? rebooted(job, n, node, change) : not_rebooted(job, n, node, change);
  } else if (done) {
    returned(node, change);
  }
  if (!done) add_marks(job, n, change, now);
  return change;
}

}  // namespace clusterctl::job
