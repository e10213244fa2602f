// The files of one run (docs/run-contract.md section 5): where they are, what run.json and
// exit.json hold. Any thread and any process.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "run/runs.h"

namespace clusterctl::run {

bool is_there(const fs::path& path);

struct RunDir {
  fs::path path;

  fs::path run_json() const { return path / "run.json"; }
  fs::path inventory() const { return path / "inventory.json"; }
  fs::path vars() const { return path / "vars.json"; }
  fs::path known_hosts() const { return path / "known_hosts"; }
  fs::path secrets() const { return path / "secrets.json"; }
  fs::path lock() const { return path / "lock"; }
  fs::path started() const { return path / "started"; }
  fs::path events() const { return path / "events.jsonl"; }
  fs::path output() const { return path / "output.log"; }
  fs::path cancel() const { return path / "cancel"; }
  fs::path exit() const { return path / "exit.json"; }
  fs::path exit_reserve() const { return path / ".exit.json"; }
  fs::path temporary() const { return path / "tmp"; }
  // What the child knows as CLUSTERCTL_RUN_DIR: `events.jsonl` there is a pipe to the shim,
  // `cancel` a link to ours.
  fs::path child() const { return path / "child"; }
};

// What the shim needs to know; the content of run.json.
struct RunRecord {
  std::string id, job, stage, playbook, created;
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  fs::path control_dir;  // of ssh's control sockets: short, outside the run directory
  std::chrono::milliseconds kill_after{10000};
  size_t max_log_bytes = 256 << 20;
};
Status write_run_record(const RunDir& dir, const RunRecord& record);
Result<RunRecord> read_run_record(const RunDir& dir);

std::string exit_text(const Exit& exit);
Result<Exit> read_exit(const RunDir& dir);

// Phase from the files and the lock alone.
RunState look_at(const RunDir& dir);

// Removes what only a living run needs: inventory, variables, secrets, temporary files, control
// sockets. Missing ones are fine.
Status remove_temporaries(const RunDir& dir, const fs::path& control_dir);

}  // namespace clusterctl::run
