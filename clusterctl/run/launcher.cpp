#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/time.h"
#include "run/follower.h"
#include "run/processes.h"
#include "run/run_dir.h"
#include "run/runs.h"

namespace clusterctl::run {
namespace {

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::chrono::milliseconds kStartTimeout{30000};
constexpr std::chrono::milliseconds kFollowTick{50};
constexpr std::chrono::milliseconds kLeftoverGrace{2000};

std::string home() {
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(16384, '\0');
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found && found->pw_dir ? found->pw_dir : "/";
}

// ssh adds 11 to 28 characters to it, and a socket's path ends at 107.
fs::path new_control_dir() {
  const bool run = ::geteuid() == 0 && ::access("/run", W_OK) == 0;
  return fs::path(run ? "/run" : "/tmp") / ("cc-" + random_hex(6));
}

bool valid_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
             id.npos;
}

bool valid_playbook(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '-' && name.front() != '.' &&
         name.find('/') == name.npos && one_line(name) == name;
}

class FileRuns final : public Runs {
 public:
  explicit FileRuns(Settings settings) : settings_(std::move(settings)) {}

  Status prepare(const RunSpec& spec) override;
  Status start(const std::string& id) override;
  RunState look(const std::string& id) const override { return look_at(at(id)); }
  RunState follow(const std::string& id, std::stop_token stop,
                  const std::function<void(std::string_view)>& on_line) override;
  std::optional<Time> last_output(const std::string& id) const override;
  Status cancel(const std::string& id, bool now) override;
  Status scrub(const std::string& id) override;
  Result<std::string> read_known_hosts(const std::string& id) const override;
  fs::path dir(const std::string& id) const override { return at(id).path; }

 private:
  // An id that is none leads to a folder that cannot exist.
  RunDir at(const std::string& id) const {
    return RunDir{settings_.runs_dir / (valid_id(id) ? id : std::string("-"))};
  }
  RunRecord record_of(const RunSpec& spec, const RunDir& dir) const;
  Status fill(const RunSpec& spec, const RunDir& dir) const;
  void end_leftovers_of(const RunDir& dir) const;
  tl::unexpected<Error> unknown(const std::string& id) const {
    return fail(Code::kNotFound, "no_such_run", fmt::format("there is no run {}", one_line(id)));
  }

  const Settings settings_;
};

RunRecord FileRuns::record_of(const RunSpec& spec, const RunDir& dir) const {
  RunRecord out{
      spec.id, spec.job, spec.stage,        spec.playbook,        format_time(SystemClock().now()),
      {},      {},       new_control_dir(), settings_.kill_after, settings_.max_log_bytes};
  out.argv = {settings_.ansible_playbook, "-i", dir.inventory().string()};
  if (!spec.files.vars.empty()) out.argv.insert(out.argv.end(), {"-e", "@" + dir.vars().string()});
  out.argv.push_back((settings_.playbooks / spec.playbook).string());
  out.env = {{"PATH", kPath},
             {"HOME", home()},
             {"LANG", "C.UTF-8"},
             {"ANSIBLE_NOCOLOR", "1"},
             {"PYTHONUNBUFFERED", "1"}};
  for (const auto& [key, value] : settings_.extra_env) out.env[key] = value;
  // Not for configuration to change: the run would not be found, told or cleaned any more.
  out.env["TMPDIR"] = dir.temporary().string();
  out.env["ANSIBLE_LOCAL_TEMP"] = dir.temporary().string();
  out.env["ANSIBLE_SSH_CONTROL_PATH_DIR"] = out.control_dir.string();
  out.env["ANSIBLE_CONFIG"] = settings_.ansible_config.string();
  out.env["CLUSTERCTL_RUN_DIR"] = dir.child().string();
  out.env["CLUSTERCTL_RUN_ID"] = spec.id;
  return out;
}

Status FileRuns::prepare(const RunSpec& spec) {
  if (!valid_id(spec.id))
    return fail(Code::kInternal, "bad_run_id",
                fmt::format("\"{}\" is no run id", one_line(spec.id)));
  if (!valid_playbook(spec.playbook))
    return fail(Code::kInternal, "bad_playbook",
                fmt::format("\"{}\" is no playbook", one_line(spec.playbook)));
  const RunDir dir = at(spec.id);
  if (auto ok = make_dirs(settings_.runs_dir, 0700); !ok) return ok;
  std::error_code error;
  if (!fs::create_directory(dir.path, error)) {
    if (!error)
      return fail(Code::kConflict, "exists", fmt::format("the run {} exists already", spec.id));
    return fail(Code::kUnavailable, "io",
                fmt::format("cannot create {}: {}", dir.path.string(), error.message()),
                "is the state directory full?");
  }
  Status ok = fill(spec, dir);
  if (!ok) {
    fs::remove_all(dir.path, error);
    return ok;
  }
  return sync_dir(settings_.runs_dir);
}

Status FileRuns::fill(const RunSpec& spec, const RunDir& dir) const {
  std::error_code error;
  fs::permissions(dir.path, fs::perms::owner_all, error);
  Status ok = create_file(dir.inventory(), spec.files.inventory, 0600);
  if (ok && !spec.files.vars.empty()) ok = create_file(dir.vars(), spec.files.vars, 0600);
  if (ok) ok = create_file(dir.known_hosts(), spec.files.known_hosts, 0600);
  if (ok && !spec.secret_values.empty())
    ok = create_file(dir.secrets(), dump_json({{"values", spec.secret_values}}), 0600);
  if (ok) ok = create_file(dir.events(), "", 0600);
  if (ok) ok = create_file(dir.output(), "", 0600);
  // Last: without run.json there is no run.
  if (ok) ok = write_run_record(dir, record_of(spec, dir));
  return ok ? sync_dir(dir.path) : ok;
}

Status FileRuns::start(const std::string& id) {
  const RunDir dir = at(id);
  const Phase phase = look_at(dir).phase;
  if (phase == Phase::kUnknown) return unknown(id);
  if (phase != Phase::kPrepared) return {};
  ProcessSpec spec;
  spec.argv = {settings_.self.string(), "run-shim", fs::absolute(dir.path).string()};
  spec.env = {{"PATH", kPath}, {"LANG", "C.UTF-8"}};
  spec.cwd = "/";
  const auto output = run_process(std::move(spec), kStartTimeout, 4096);
  if (!output) return fail(output.error());
  if (output->status.ok() && !output->timed_out) return {};
  const std::string why =
      output->timed_out ? "its shim did not answer" : one_line(trim(output->text));
  return fail(Code::kUnavailable, "run_not_started",
              fmt::format("the run {} could not be started: {}", id, why));
}

RunState FileRuns::follow(const std::string& id, std::stop_token stop,
                          const std::function<void(std::string_view)>& on_line) {
  const RunDir dir = at(id);
  Follower follower(dir.events(), on_line);
  std::mutex mutex;
  std::condition_variable_any wake;
  for (;;) {
    // The state is taken before the rest of the events is read: when it says that the run has
    // ended, all of them are there.
    RunState state = look_at(dir);
    follower.read();
    if (state.phase == Phase::kUnknown) state.phase = Phase::kInterrupted;
    if (state.phase == Phase::kInterrupted) end_leftovers_of(dir);
    if (state.phase != Phase::kRunning || stop.stop_requested()) return state;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, kFollowTick, [] { return false; });
  }
}

std::optional<Time> FileRuns::last_output(const std::string& id) const {
  const RunDir dir = at(id);
  std::optional<Time> last;
  struct stat info {};
  if (::stat(dir.started().c_str(), &info) != 0) return last;
  for (const fs::path& file : {dir.started(), dir.events(), dir.output()}) {
    if (::stat(file.c_str(), &info) != 0) continue;
    const Time written{
        std::chrono::milliseconds(info.st_mtim.tv_sec * 1000LL + info.st_mtim.tv_nsec / 1000000)};
    last = std::max(last.value_or(written), written);
  }
  return last;
}

Status FileRuns::cancel(const std::string& id, bool now) {
  const RunDir dir = at(id);
  const Phase phase = look_at(dir).phase;
  if (phase == Phase::kUnknown) return unknown(id);
  if (phase == Phase::kFinished || phase == Phase::kInterrupted) return {};
  // A request for the end at once is not taken back by a later, milder one.
  const auto present = read_file(dir.cancel(), 64);
  if (present && (!now || present->rfind("now", 0) == 0)) return {};
  return write_file_atomic(dir.cancel(), now ? "now\n" : "\n", 0600);
}

void FileRuns::end_leftovers_of(const RunDir& dir) const {
  const auto record = read_run_record(dir);
  const size_t ended =
      end_leftovers(dir.child(), record ? record->control_dir : fs::path(), kLeftoverGrace);
  if (ended > 0)
    log::warn("run {}: its shim was killed; ended {} processes it left behind",
              dir.path.filename().string(), ended);
}

Status FileRuns::scrub(const std::string& id) {
  const RunDir dir = at(id);
  const Phase phase = look_at(dir).phase;
  if (phase == Phase::kUnknown) return {};
  if (phase == Phase::kRunning)
    return fail(Code::kConflict, "running", fmt::format("the run {} has not ended", id));
  if (phase == Phase::kInterrupted) end_leftovers_of(dir);
  const auto record = read_run_record(dir);
  std::error_code ignored;
  fs::remove(dir.known_hosts(), ignored);
  if (phase != Phase::kPrepared) fs::remove(dir.exit_reserve(), ignored);
  return remove_temporaries(dir, record ? record->control_dir : fs::path());
}

Result<std::string> FileRuns::read_known_hosts(const std::string& id) const {
  return read_file(at(id).known_hosts(), 16 << 20);
}

}  // namespace

std::unique_ptr<Runs> make_runs(Settings settings) {
  settings.runs_dir = fs::absolute(settings.runs_dir);
  return std::make_unique<FileRuns>(std::move(settings));
}

}  // namespace clusterctl::run
