// Starting and watching child processes: an argv vector, never a shell. Any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `env` unless it has a slash
  std::map<std::string, std::string> env;  // the whole environment of the child
  fs::path cwd;                            // empty: the parent's
  bool new_session = false;                // setsid: survives the parent's terminal and group
  int output = -1;  // stdout and stderr; -1: /dev/null. Standard input is always /dev/null.
  std::vector<std::pair<int, int>>
      keep;  // further descriptors: parent's -> child's number. All others are closed.
};

struct ExitStatus {
  int code = 0;    // meaningful when signal is 0
  int signal = 0;  // the signal that ended it, 0 if it exited
  bool ok() const { return code == 0 && signal == 0; }
};

Result<pid_t> spawn(const ProcessSpec& spec);
// Waits without limit. ECHILD (not our child, already reaped) is an Error.
Result<ExitStatus> wait_process(pid_t pid);

struct Output {
  ExitStatus status;
  std::string text;  // stdout and stderr together, cut at `limit`
  bool timed_out = false;
};
// Runs to the end, or kills it after `timeout`.
Result<Output> run_process(ProcessSpec spec, std::chrono::milliseconds timeout,
                           size_t limit = 1 << 20);

// The boot id of this machine: changes with every boot, so a pid from another boot is recognised as
// meaningless.
std::string boot_id();
// Start time of a process in clock ticks since boot; with the pid it names a process beyond reuse
// of its number. nullopt: no such process.
std::optional<uint64_t> process_start_time(pid_t pid);

// Raises this process's limit of open files towards `wanted`, as far as it may; what it is then.
// Programs that are started inherit it.
size_t raise_descriptor_limit(size_t wanted);

}  // namespace clusterctl
