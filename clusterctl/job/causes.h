// Why the nodes of a job failed, the same reason once: identical failures are one group with the
// nodes it met. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/snapshot.h"
#include "job/job.h"

namespace clusterctl::job {

struct CauseGroup {
  std::string line;  // of the first of them: "n1: docker: install packages: <message>"
  std::string service, task, message, hint, code;
  std::vector<std::string> nodes;  // names, in the order of the job
};

// Is it the code (playbooks/hints.yml) of a machine that answers and does not let us in? It has not
// disappeared then, whichever machine it is.
bool answers_and_refuses(std::string_view code);

// One node's reason: "node: service: task: message".
std::string cause_line(const NodeOutcome& node);

// The failed and cancelled nodes of a job. Failures are identical when service, task, code and
// message are, but for the node's own name and address, other addresses and process ids. Follow-ups
// ("not attempted") come last, else the order of the job. `fleet` may be null.
std::vector<CauseGroup> group_causes(const Job& job, const fleet::Snapshot* fleet);

// The job's one line: the first group, how many more share it, and how many failed otherwise:
// "n1: docker: …: no space left (same on 7 other nodes; 2 nodes failed for other reasons)".
std::string cause_summary(const std::vector<CauseGroup>& groups);

}  // namespace clusterctl::job
