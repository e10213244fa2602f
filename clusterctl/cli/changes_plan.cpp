#include "cli/changes_plan.h"

#include "cli/difference_view.h"
#include "cli/text.h"

namespace clusterctl::cli {

Result<Json> plan_changes(Session& session, Json changes) {
  return session.call("POST", "/v1/plans",
                      {{"changes", std::move(changes)}, {"work", false}, {"dry_run", true}});
}

Result<int> show_changes(Session& session, Json changes) {
  auto plan = plan_changes(session, std::move(changes));
  if (!plan) return fail(plan.error());
  if (session.structured()) {
    session.data(*plan);
  } else if (session.names_only()) {
    for (const Json& node : field(*plan, "nodes")) session.line(text(node, "name"));
  } else {
    session.terminal.out(difference_text(*plan));
    session.line(field(*plan, "nothing") == true ? "nothing would change"
                                                 : "plan: " + clean(text(*plan, "title")));
    session.next("nothing was done; the same without --plan does it");
  }
  return kExitOk;
}

}  // namespace clusterctl::cli
