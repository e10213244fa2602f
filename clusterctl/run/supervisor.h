// The shim's body: one child, its output, its events, the request to end, and the record of its
// end. Single-threaded, in its own process; uses process-wide things (signals, waitpid for any
// child), so never inside the daemon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/process.h"
#include "run/output_log.h"
#include "run/redactor.h"
#include "run/run_dir.h"

namespace clusterctl::run {

class Supervisor {
 public:
  explicit Supervisor(RunDir dir) : dir_(std::move(dir)) {}

  enum class Begin { kStarted, kRanAlready, kFailed };
  // Takes the lock, makes `started`, starts the child. kFailed: `problem` says why; when `started`
  // exists the run has ended with it.
  Begin begin(std::string& problem);
  // Until the child and everything it left behind have ended and exit.json is written.
  void run();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  Status claim(bool& ran_already);
  Status open_all();
  Status make_child_dir();
  Status start_child();
  [[noreturn]] void become_child(int error_fd);
  void wait_for_something();
  void pump_output(size_t limit);
  void pump_events(size_t limit);
  void write_events(std::string_view lines);
  bool try_write(std::string_view lines);
  void wait_for_space();
  void reap();
  void check_cancel();
  void end_rest();
  void finish(Exit exit);

  RunDir dir_;
  RunRecord record_;
  std::optional<FileLock> lock_;
  std::unique_ptr<Redactor> redactor_;
  std::unique_ptr<OutputLog> log_;
  Fd exit_file_, output_reader_, output_writer_, pipe_, events_, signals_;
  std::string event_bytes_;  // beginning of an event line
  bool overlong_ = false;    // the present event line is being dropped
  std::string waiting_;      // lines for which the disk has no space
  bool events_lost_ = false;
  pid_t child_ = 0;
  std::optional<ExitStatus> ended_;
  bool childless_ = false;
  bool ending_now_ = false;
  std::optional<TimePoint> kill_at_;  // KILL of the child's group
  std::optional<TimePoint> rest_begun_;
  bool gave_up_ = false;
};

}  // namespace clusterctl::run
