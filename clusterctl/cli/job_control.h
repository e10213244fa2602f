// Commands that steer jobs: cancel, pause, resume, retry. One thread.
#pragma once

#include <vector>

#include "cli/command.h"

namespace clusterctl::cli {

std::vector<CommandPtr> make_job_controls();

}  // namespace clusterctl::cli
