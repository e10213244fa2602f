// Watching a job until it ends: progress while it runs, the outcome of every node at the end. One
// thread.
#pragma once

#include <string>

#include "cli/session.h"

namespace clusterctl::cli {

// Follows the job; the daemon may go and come back meanwhile. Exit code 0 when it succeeded and
// kExitDetached after Ctrl-C; a job that did not succeed is an Error of kJobFailed.
Result<int> attach(Session& session, const std::string& job_id);

// The outcome of a job that has ended; same answers.
Result<int> conclude(Session& session, const Json& job);

// Why a job does not move: behind which job it waits, on which node, since when; or that it is
// paused. "": it runs or has ended.
std::string waiting_line(const Json& job);

bool is_final_state(const std::string& state);

}  // namespace clusterctl::cli
