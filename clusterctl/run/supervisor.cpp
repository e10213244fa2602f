#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/time.h"
#include "run/processes.h"

namespace clusterctl::run {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick{200};        // how soon `cancel` is seen
constexpr milliseconds kRestTick{20};     // while the rest of the run is being ended
constexpr milliseconds kRestGrace{2000};  // between TERM and KILL for what the child left behind
constexpr milliseconds kGiveUp{10000};    // after KILL: such a process is stuck in the kernel
constexpr size_t kChunk = 64 << 10;
constexpr size_t kMaxEventLine = 4 << 20;
constexpr size_t kMaxWaiting = 64 << 20;   // of events that wait for space on the disk
constexpr milliseconds kWaitAtEnd{60000};  // for that space, when everything else is over
constexpr int kCancelledByPlugin = 250;
constexpr int kCannotStart = 127;

Result<std::vector<std::string>> read_secrets(const RunDir& dir) {
  if (!is_there(dir.secrets())) return std::vector<std::string>();
  const auto text = read_file(dir.secrets());
  if (!text) return fail(text.error());
  const auto json = parse_json_object(*text, dir.secrets().string());
  if (!json) return fail(json.error());
  return get_strings(*json, "values");
}

// A folder that nobody else can have prepared for us.
Status make_private_dir(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  struct stat info {};
  if (errno == EEXIST && ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
      info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) {
    return {};
  }
  errno = errno == 0 ? EEXIST : errno;
  return fail(errno_error("create", path));
}

}  // namespace

Supervisor::Begin Supervisor::begin(std::string& problem) {
  bool ran_already = false;
  if (auto ok = claim(ran_already); !ok) {
    problem = ok.error().line();
    return Begin::kFailed;
  }
  if (ran_already) return Begin::kRanAlready;
  Status ok = open_all();
  if (ok && is_there(dir_.cancel())) {  // asked to end before it began
    finish(Exit{kCancelledByPlugin, 0, true, false, false, ""});
    return Begin::kRanAlready;
  }
  if (ok) ok = start_child();
  if (ok) return Begin::kStarted;
  problem = ok.error().line();
  if (log_) log_->write(problem + "\n");
  finish(Exit{kCannotStart, 0, false, false, false, ""});
  return Begin::kFailed;
}

Status Supervisor::claim(bool& ran_already) {
  auto record = read_run_record(dir_);
  if (!record) return fail(record.error());
  record_ = std::move(*record);
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    auto lock = FileLock::acquire(dir_.lock());
    if (lock) {
      lock_ = std::move(*lock);
      break;
    }
    if (lock.error().code != Code::kConflict) return fail(lock.error());
    // Held by the shim of this run, or for a moment by somebody who looks whether it is held.
    if (is_there(dir_.started())) {
      ran_already = true;
      return {};
    }
    if (steady_clock::now() > deadline) return fail(lock.error());
    std::this_thread::sleep_for(milliseconds(5));
  }
  const Json started = {{"boot_id", boot_id()},
                        {"pid", ::getpid()},
                        {"start_time", process_start_time(::getpid()).value_or(0)},
                        {"time", format_time(SystemClock().now())}};
  // Space for exit.json is taken before `started` says that there will be one.
  if (!is_there(dir_.started())) {
    exit_file_.reset(
        ::open(dir_.exit_reserve().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!exit_file_.valid()) return fail(errno_error("create", dir_.exit_reserve()));
    if (const int rc = ::posix_fallocate(exit_file_.get(), 0, 4096); rc != 0) {
      errno = rc;
      return fail(errno_error("reserve", dir_.exit_reserve()));
    }
  }
  auto created = create_file(dir_.started(), dump_json(started) + "\n", 0644);
  if (!created && created.error().reason == "exists") {
    ran_already = true;
    return {};
  }
  return created;
}

Status Supervisor::open_all() {
  log_ = std::make_unique<OutputLog>(dir_.output(), record_.max_log_bytes);
  const auto secrets = read_secrets(dir_);
  if (!secrets) return fail(secrets.error());
  redactor_ = std::make_unique<Redactor>(*secrets);
  events_.reset(::open(dir_.events().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!events_.valid()) return fail(errno_error("open", dir_.events()));
  if (auto ok = make_private_dir(dir_.temporary()); !ok) return ok;
  if (!record_.control_dir.empty()) {
    if (auto ok = make_private_dir(record_.control_dir); !ok) return ok;
  }
  if (auto ok = make_child_dir(); !ok) return ok;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error("create", "pipe"));
  output_reader_.reset(ends[0]);
  output_writer_.reset(ends[1]);
  ::fcntl(output_reader_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(output_reader_.get(), F_SETPIPE_SZ, 1 << 20);
  ::fcntl(pipe_.get(), F_SETPIPE_SZ, 1 << 20);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  signals_.reset(::signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return fail(errno_error("create", "signalfd"));
  return {};
}

Status Supervisor::make_child_dir() {
  if (auto ok = make_private_dir(dir_.child()); !ok) return ok;
  const fs::path pipe = dir_.child() / "events.jsonl";
  if (::mkfifo(pipe.c_str(), 0600) != 0) return fail(errno_error("create", pipe));
  // Open for both, so that it never reports an end while the child has not opened it yet, and a
  // write there never blocks for a reader.
  pipe_.reset(::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!pipe_.valid()) return fail(errno_error("open", pipe));
  const fs::path link = dir_.child() / "cancel";
  if (::symlink("../cancel", link.c_str()) != 0) return fail(errno_error("create", link));
  return {};
}

Status Supervisor::start_child() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error("create", "pipe"));
  Fd error_reader(ends[0]), error_writer(ends[1]);
  child_ = ::fork();
  if (child_ < 0) return fail(errno_error("start", record_.argv[0]));
  if (child_ == 0) become_child(error_writer.get());
  ::setpgid(child_, child_);
  error_writer.reset();
  output_writer_.reset();
  int error = 0;
  ssize_t n;
  while ((n = ::read(error_reader.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n != sizeof error) return {};
  ::waitpid(child_, nullptr, 0);
  errno = error;
  Error out = errno_error("start", record_.argv.empty() ? "the program" : record_.argv[0]);
  out.hint = "is it installed, and in the PATH of the run?";
  return fail(std::move(out));
}

void Supervisor::become_child(int error_fd) {
  const pid_t shim = ::getppid();
  ::setpgid(0, 0);
  // Should the shim be killed, nobody would drain the output or record the end: the playbook must
  // not go on unseen.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != shim) ::_exit(1);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output_writer_.get(), 1);
  ::dup2(output_writer_.get(), 2);
  std::vector<std::string> env;
  for (const auto& [key, value] : record_.env) env.push_back(key + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& arg : record_.argv) argv.push_back(arg.data());
  for (std::string& entry : env) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  environ = envp.data();  // execvp looks for the program in this PATH
  if (argv[0]) {
    ::execvp(argv[0], argv.data());
  } else {
    errno = EINVAL;
  }
  const int error = errno;
  (void)!::write(error_fd, &error, sizeof error);
  ::_exit(kCannotStart);
}

void Supervisor::run() {
  while (!(ended_ && (childless_ || gave_up_))) {
    wait_for_something();
    pump_output(16 * kChunk);
    pump_events(16 * kChunk);
    reap();
    check_cancel();
    if (ended_ && !childless_) end_rest();
  }
  pump_output(SIZE_MAX);
  pump_events(SIZE_MAX);
  wait_for_space();
  log_->write(redactor_->finish());
  if (gave_up_) log_->write("\n[clusterctl: processes of this run could not be ended]\n");
  const bool by_plugin =
      ended_->signal == 0 && ended_->code == kCancelledByPlugin && is_there(dir_.cancel());
  finish(Exit{ended_->code, ended_->signal, by_plugin || (ending_now_ && !ended_->ok()), false,
              events_lost_ || !waiting_.empty(), ""});
}

void Supervisor::wait_for_something() {
  pollfd fds[] = {
      {output_reader_.get(), POLLIN, 0}, {pipe_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  const auto tick = ended_ || kill_at_ ? kRestTick : kTick;
  ::poll(fds, 3, static_cast<int>(tick.count()));
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) > 0) {
  }
}

void Supervisor::pump_output(size_t limit) {
  char buffer[kChunk];
  for (size_t total = 0; total < limit && output_reader_.valid();) {
    const ssize_t n = ::read(output_reader_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // nothing there now
    if (n == 0) {
      output_reader_.reset();  // poll ignores a negative descriptor
      return;
    }
    total += static_cast<size_t>(n);
    log_->write(redactor_->feed({buffer, static_cast<size_t>(n)}));
  }
}

void Supervisor::pump_events(size_t limit) {
  char buffer[kChunk];
  for (size_t total = 0; total < limit;) {
    const ssize_t n = ::read(pipe_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    total += static_cast<size_t>(n);
    std::string_view bytes(buffer, static_cast<size_t>(n));
    std::string lines;
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const bool complete = end != std::string_view::npos;
      if (!overlong_) event_bytes_.append(bytes.substr(0, complete ? end : bytes.size()));
      bytes.remove_prefix(complete ? end + 1 : bytes.size());
      if (event_bytes_.size() > kMaxEventLine) {
        overlong_ = true;
        event_bytes_.clear();
      }
      if (!complete) continue;
      if (!overlong_) lines += redactor_->replace_in_event(event_bytes_) + "\n";
      event_bytes_.clear();
      overlong_ = false;
    }
    if (!lines.empty()) write_events(lines);
  }
  if (!waiting_.empty()) write_events("");
}

// In their order: while some wait, the later ones do so, too.
void Supervisor::write_events(std::string_view lines) {
  waiting_ += lines;
  if (try_write(waiting_)) return waiting_.clear();
  events_lost_ = events_lost_ || waiting_.size() > kMaxWaiting;
  if (events_lost_) waiting_.clear();
}

// Whole lines or nothing: a line that broke off is cut away before the next attempt.
bool Supervisor::try_write(std::string_view lines) {
  if (events_lost_) return false;  // with a gap in the middle they would tell another story
  for (;;) {
    struct stat before {};
    ::fstat(events_.get(), &before);
    if (write_all(events_.get(), lines)) return true;
    if (::ftruncate(events_.get(), before.st_size) != 0 || !log_->give_way()) return false;
  }
}

void Supervisor::wait_for_space() {
  const auto deadline = steady_clock::now() + kWaitAtEnd;
  while (!waiting_.empty() && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTick);
    write_events("");
  }
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    childless_ = pid < 0;
    if (pid <= 0) return;
    if (pid != child_) continue;  // an orphan of the run: it is ours because we are its sub-reaper
    ExitStatus ended;
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    ended_ = ended;
    kill_at_.reset();
  }
}

void Supervisor::check_cancel() {
  if (ended_) return;
  if (ending_now_) {
    if (kill_at_ && steady_clock::now() >= *kill_at_) {
      ::kill(-child_, SIGKILL);
      kill_at_.reset();
    }
    return;
  }
  if (!is_there(dir_.cancel())) return;
  const auto how = read_file(dir_.cancel(), 64);
  if (!how || how->rfind("now", 0) != 0) return;  // the callback plugin ends it at the next task
  ending_now_ = true;
  kill_at_ = steady_clock::now() + record_.kill_after;
  ::kill(-child_, SIGTERM);
}

void Supervisor::end_rest() {
  const auto now = steady_clock::now();
  if (!rest_begun_) rest_begun_ = now;
  const milliseconds grace = ending_now_ ? record_.kill_after : kRestGrace;
  const bool kill = now - *rest_begun_ >= grace;
  if (now - *rest_begun_ >= grace + kGiveUp) gave_up_ = true;
  // ControlPersist masters, forgotten background jobs. Children of those become ours as they end;
  // the loop comes again.
  for (const pid_t pid : children_of(::getpid())) ::kill(pid, kill ? SIGKILL : SIGTERM);
}

void Supervisor::finish(Exit exit) {
  (void)!remove_temporaries(dir_, record_.control_dir);
  exit.truncated = log_ && log_->truncated();
  exit.ended = format_time(SystemClock().now());
  if (log_) log_->sync();
  if (events_.valid()) ::fdatasync(events_.get());
  const std::string text = exit_text(exit);
  // The space was reserved, so this succeeds on a full disk as well.
  if (::pwrite(exit_file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return;
  (void)!::ftruncate(exit_file_.get(), static_cast<off_t>(text.size()));
  ::fsync(exit_file_.get());
  if (::rename(dir_.exit_reserve().c_str(), dir_.exit().c_str()) == 0) (void)sync_dir(dir_.path);
}

}  // namespace clusterctl::run
