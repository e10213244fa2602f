// Going on with a job that ended badly: which of its nodes, and from which stage. Pure; any thread.
//
// `resume` goes on where the job broke off: nodes that were done are left out, stages that a node
// has behind it are left out for that node. `retry` begins anew with the nodes that failed or were
// not touched.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"

namespace clusterctl::job {

// So long the secret variables of a job that ended badly are kept; without them it cannot be gone
// on with.
constexpr std::chrono::hours kSecretsKept{24 * 7};

struct Selection {
  bool resume = false;  // everything that is not done, from where it was
  bool failed = false;  // retry: nodes that failed, or on which the job was stopped
  bool untouched = false;
};

// kConflict: not_ended, succeeded, continued, secrets_gone.
Status check_continuable(const Job& job);
bool continuable(const Job& job);
// Until when; nullopt: no limit of time.
std::optional<Time> continuable_until(const Job& job);

// The outcomes that are gone on with, in the job's order.
std::vector<const NodeOutcome*> nodes_to_continue(const Job& job, const Selection& what);

// The planned stages that `node` has behind it, so that a resumed job leaves them out. Nothing for
// a node that was cleaned, or on which the cleanup failed: it begins anew.
std::set<std::string> passed_stages(const Job& job, const NodeOutcome& node);

// Takes the nodes out of planned stages that they have behind them; stages without nodes become
// skipped. Observations stay: they guard the quorum.
void leave_out_passed(Job& job);

}  // namespace clusterctl::job
