// `--watch`: a list that shows itself again when something happened in the fleet. One thread.
#pragma once

#include <functional>
#include <string>

#include "cli/session.h"

namespace clusterctl::cli {

// Everything that is to be seen now, asked from the daemon.
using Render = std::function<Result<std::string>()>;

// Until Ctrl-C: kExitDetached. On a terminal the picture is redrawn; elsewhere it is printed again
// when it has changed (JSON: one document a line). The fleet's events say when to look, over one
// stream; however many there are, it looks at most once a second, and less often when looking takes
// long. While the daemon is away the last picture stays; after a minute that is an Error.
Result<int> watch(Session& session, const Render& render);

}  // namespace clusterctl::cli
