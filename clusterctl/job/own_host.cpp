#include "job/own_host.h"

#include <algorithm>

#include "fleet/placement_host.h"

namespace clusterctl::job {

void refuse_own_host(const Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                     StageOutcome& outcome) {
  if (job.kind != "commission" || stage.def.name != "check" || job.request.controller_host) return;
  for (const NodeChange& seen : outcome.observations) {
    const auto it = fleet.nodes.find(seen.id);
    const bool target =
        std::find(stage.nodes.begin(), stage.nodes.end(), seen.id) != stage.nodes.end();
    if (it == fleet.nodes.end() || !seen.hardware || !target) continue;
    fleet::Node node = it->second;
    node.status.hardware = seen.hardware;
    const bool failed = std::any_of(outcome.failures.begin(), outcome.failures.end(),
                                    [&](const Failure& f) { return f.node == seen.id; });
    if (failed || !fleet::is_own_host(fleet.own_host, node)) continue;
    outcome.failures.push_back(
        {seen.id, "base", "check", "this is the machine that the controller runs on",
         "correct the address, or say that it is meant: --controller-host", "own_host"});
    if (outcome.state == StageState::kSucceeded) outcome.state = StageState::kFailed;
  }
}

}  // namespace clusterctl::job
