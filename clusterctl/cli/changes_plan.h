// `--plan` of the small commands: what would change, and whether it would be refused. One thread.
#pragma once

#include "cli/session.h"

namespace clusterctl::cli {

// `changes`: {"nodes", "globals", "remove"} of docs/rest.md. Nothing is stored, nothing is done.
Result<Json> plan_changes(Session& session, Json changes);
Result<int> show_changes(Session& session, Json changes);

}  // namespace clusterctl::cli
