// Finding and ending the processes of a run through /proc. Any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "base/files.h"

namespace clusterctl::run {

std::vector<pid_t> children_of(pid_t parent);

// Processes on this machine that belong to a run: those with CLUSTERCTL_RUN_DIR=<child_dir> in
// their environment, and the ssh masters whose title names a socket in `control_dir` (ssh
// overwrites its environment with its title).
std::vector<pid_t> processes_of_run(const fs::path& child_dir, const fs::path& control_dir);

// For a run whose shim was killed: ends what is left, TERM first. Returns how many processes there
// were.
size_t end_leftovers(const fs::path& child_dir, const fs::path& control_dir,
                     std::chrono::milliseconds grace);

}  // namespace clusterctl::run
