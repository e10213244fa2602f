#include "job/identity.h"

#include "fleet/recognize.h"
#include "job/locks.h"

namespace clusterctl::job {
namespace {

bool only_looks(const StageStatus& stage) {
  return stage.def.name == "check" || stage.def.name == "observe" || stage.def.name == "verify" ||
         stage.def.name == "show";
}

}  // namespace

std::optional<Problem> leave_out_doubtful(Job& job, const StageStatus& stage,
                                          const fleet::Snapshot& fleet) {
  if (only_looks(stage) || stage.puts_back()) return std::nullopt;
  std::optional<Problem> stop;
  for (const std::string& id : stage.def.nodes) {
    NodeOutcome* n = job.outcome(id);
    const auto node = fleet.nodes.find(id);
    if (!n || node == fleet.nodes.end()) continue;
    if (n->state != OutcomeState::kPending && n->state != OutcomeState::kRunning) continue;
    const auto block = fleet::identity_block(node->second, job.kind, urgent(job));
    if (!block) continue;
    n->state = OutcomeState::kFailed;
    n->stage = stage.def.name;
    n->task = "identity";
    n->message = block->message;
    n->hint = block->hint;
    n->code = block->code;
    const auto role = job.roles.find(id);
    if (job.kind == "commission" && role != job.roles.end() &&
        role->second == fleet::Role::kManager && !stop) {
      stop = block;
    }
  }
  return stop;
}

}  // namespace clusterctl::job
