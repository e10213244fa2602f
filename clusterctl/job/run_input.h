// What one stage gives to Ansible, put together from the plan, the fleet as it is now, and resolved
// secrets. Any thread.
#pragma once

#include "ansible/render.h"
#include "base/error.h"
#include "job/host.h"
#include "job/job.h"

namespace clusterctl::job {

// `targets`: ids of the nodes this run works on, out of stage.def.nodes.
Result<ansible::RunInput> make_run_input(const Context& context, const Job& job,
                                         const StageStatus& stage, const std::string& run_id);

// Before a stage that converges: writes down in the job with which variables.
void note_rendered(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                   const catalog::Catalog& catalog);

}  // namespace clusterctl::job
