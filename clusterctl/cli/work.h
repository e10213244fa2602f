// Work on nodes as a command asks for it: show the plan, or start the job and stay attached. One
// thread.
#pragma once

#include "cli/session.h"

namespace clusterctl::cli {

// What this job request (docs/rest.md) would do, as the daemon plans it.
Result<Json> ask_plan(Session& session, Json body);
// The same for people or programs; the exit code.
Result<int> show_plan(Session& session, Json body);
// Starts the job, with one key for all tries, so that an answer lost on the way does not start the
// work twice; then watches it, or says its id when `detach`. The exit code.
Result<int> start_job(Session& session, const Json& body, bool detach);

}  // namespace clusterctl::cli
