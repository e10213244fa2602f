// Playbook runs: one ansible-playbook under a detached shim, found again after any death of the
// daemon (docs/run-contract.md section 5). All functions may be called from any thread; one run
// belongs to one job thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "ansible/render.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"

namespace clusterctl::run {

struct RunSpec {
  std::string id, job, stage;
  std::string playbook;  // "site.yml"
  ansible::RunFiles files;
  std::vector<std::string> secret_values;  // replaced by *** in output.log and events.jsonl
};

struct Exit {
  int code = 0;
  int signal = 0;
  bool cancelled = false;
  bool truncated = false;
  bool events_lost = false;  // some could not be written before the run had to end
  std::string ended;         // RFC 3339
};

enum class Phase { kUnknown, kPrepared, kRunning, kFinished, kInterrupted };
struct RunState {
  Phase phase = Phase::kUnknown;
  std::optional<Exit> exit;  // when kFinished
};

class Runs {
 public:
  virtual ~Runs() = default;
  // Creates the run directory with everything in it; starts nothing.
  virtual Status prepare(const RunSpec& spec) = 0;
  // Spawns the shim and returns when the playbook's process runs. Harmless when it runs or ran
  // already: the shim starts a run at most once. An Error says why it could not; the run may then
  // be kFinished (code 127).
  virtual Status start(const std::string& id) = 0;
  virtual RunState look(const std::string& id) const = 0;
  // Blocks until the run is finished or interrupted, calling `on_line` for each complete line of
  // events.jsonl from the start, or until stop is requested (the run goes on then). A run that was
  // not started is not waited for. Of an interrupted run, whatever processes are left are ended. A
  // run whose folder is gone is interrupted as well.
  virtual RunState follow(const std::string& id, std::stop_token stop,
                          const std::function<void(std::string_view)>& on_line) = 0;
  // When the run last wrote an event or a line of output; nullopt: it has not begun. Wall clock.
  virtual std::optional<Time> last_output(const std::string& id) const = 0;
  // Asks for the end at the next task, or at once. Idempotent.
  virtual Status cancel(const std::string& id, bool now) = 0;
  // Removes inventory, variables, known hosts and temporary files of a run that ended, and ends
  // what a killed shim left. Logs and events stay. kConflict "running" while it runs.
  virtual Status scrub(const std::string& id) = 0;
  virtual Result<std::string> read_known_hosts(const std::string& id) const = 0;
  virtual fs::path dir(const std::string& id) const = 0;
};

struct Settings {
  fs::path runs_dir;        // <state-dir>/runs
  fs::path playbooks;       // absolute folder with site.yml …
  fs::path ansible_config;  // absolute ansible.cfg
  std::string ansible_playbook = "ansible-playbook";
  fs::path self;  // this program, for "run-shim"
  std::map<std::string, std::string> extra_env;
  std::chrono::milliseconds kill_after{10000};  // between TERM and KILL
  size_t max_log_bytes = 256 << 20;             // of one run's output.log
};
std::unique_ptr<Runs> make_runs(Settings settings);

// Body of `clusterctl run-shim DIR`: returns the exit code of the shim (not of the run).
int run_shim(const fs::path& dir);

}  // namespace clusterctl::run
