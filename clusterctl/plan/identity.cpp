// Whether the nodes of a plan are the machines they are taken for.
#include <fmt/format.h>

#include "base/time.h"
#include "fleet/recognize.h"
#include "plan/context.h"

namespace clusterctl::plan {

Status check_identity(const fleet::Snapshot& snapshot, const Request& request, Plan& plan) {
  fleet::Problems problems;
  for (const std::string& id : plan.targets) {
    const auto block = fleet::identity_block(snapshot.nodes.at(id), request.kind,
                                             request.force && request.powered_off);
    if (block) problems.add(Code::kConflict, *block);
  }
  if (!problems.empty()) return problems.refuse("nothing is changed");
  if (snapshot.isolated_since) {
    plan.warnings.push_back(
        {"CONTROLLER_ISOLATED",
         fmt::format("most nodes have not answered since {}: who is there is known from before",
                     format_time(*snapshot.isolated_since)),
         "look at this machine's own network first", ""});
  }
  return {};
}

}  // namespace clusterctl::plan
