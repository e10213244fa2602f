#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"

namespace clusterctl {
namespace {

std::string find_program(const std::string& name, const std::map<std::string, std::string>& env) {
  if (name.find('/') != std::string::npos) return name;
  const auto path = env.find("PATH");
  for (const std::string& dir :
       split(path == env.end() ? "/usr/bin:/bin" : path->second, ':', true)) {
    const std::string candidate = dir + "/" + name;
    std::error_code ec;
    if (fs::is_regular_file(candidate, ec) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return "";
}

// posix_spawn actions with their destructor.
struct Actions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

}  // namespace

namespace {

// Which of the parent's descriptors becomes which of the child's. Sources are first copied out of
// the way of all targets, so that a target number never hits a source that is still needed;
// whatever is no target is closed.
Status map_descriptors(const ProcessSpec& spec, posix_spawn_file_actions_t& actions,
                       std::vector<Fd>& moved) {
  std::map<int, int> from;  // child's -> parent's
  if (spec.output >= 0) from[1] = spec.output;
  for (const auto& [source, target] : spec.keep) from[target] = source;
  const int end = std::max(3, from.empty() ? 0 : from.rbegin()->first + 1);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (spec.output < 0) posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  for (auto& [target, source] : from) {
    moved.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, std::max(100, end)));
    if (!moved.back().valid())
      return fail(errno_error("pass", fmt::format("descriptor {}", source)));
    posix_spawn_file_actions_adddup2(&actions, moved.back().get(), target);
  }
  if (!from.contains(2)) posix_spawn_file_actions_adddup2(&actions, 1, 2);
  for (int fd = 3; fd < end; ++fd) {
    if (!from.contains(fd)) posix_spawn_file_actions_addclose(&actions, fd);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, end);
  return {};
}

// Signals as a fresh program expects them: none blocked, none ignored.
void set_attributes(const ProcessSpec& spec, posix_spawnattr_t& attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int flags =
      POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (spec.new_session ? POSIX_SPAWN_SETSID : 0);
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
}

}  // namespace

Result<pid_t> spawn(const ProcessSpec& spec) {
  const std::string program = spec.argv.empty() ? "" : find_program(spec.argv[0], spec.env);
  if (program.empty()) {
    return fail(Code::kNotFound, "no_such_program",
                fmt::format("the program {} was not found", spec.argv.empty() ? "" : spec.argv[0]));
  }
  Actions a;
  std::vector<Fd> moved;
  if (auto mapped = map_descriptors(spec, a.actions, moved); !mapped) return fail(mapped.error());
  if (!spec.cwd.empty()) posix_spawn_file_actions_addchdir_np(&a.actions, spec.cwd.c_str());
  set_attributes(spec, a.attributes);

  std::vector<char*> argv, envp;
  for (const std::string& arg : spec.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> env;
  for (const auto& [key, value] : spec.env) env.push_back(key + "=" + value);
  for (std::string& entry : env) envp.push_back(entry.data());
  envp.push_back(nullptr);

  pid_t pid = 0;
  const int rc =
      ::posix_spawn(&pid, program.c_str(), &a.actions, &a.attributes, argv.data(), envp.data());
  if (rc != 0) {
    errno = rc;
    return fail(errno_error("start", program));
  }
  return pid;
}

Result<ExitStatus> wait_process(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      return fail(Code::kNotFound, "no_child",
                  fmt::format("process {} cannot be waited for: {}", pid, std::strerror(errno)));
  }
  ExitStatus out;
  if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
  if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
  return out;
}

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Waits until `fd` is readable (a pidfd: until the process has ended). False when the deadline
// passes first, also for a descriptor that is always readable.
bool wait_readable(int fd, SteadyTime deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
            .count();
    if (left <= 0) return false;
    pollfd p{fd, POLLIN, 0};
    const int ready = ::poll(&p, 1, static_cast<int>(std::min<long>(left, 60000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Collects output until end of file (true) or the deadline (false).
bool drain(int fd, SteadyTime deadline, size_t limit, std::string& text) {
  char buffer[65536];
  while (wait_readable(fd, deadline)) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(buffer, std::min(static_cast<size_t>(n), limit - std::min(limit, text.size())));
  }
  return false;
}

}  // namespace

Result<Output> run_process(ProcessSpec spec, std::chrono::milliseconds timeout, size_t limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error("create", "pipe"));
  Fd reader(ends[0]), writer(ends[1]);
  spec.output = writer.get();
  spec.new_session = true;  // its own group, so that the timeout ends its children as well
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  const auto pid = spawn(spec);
  if (!pid) return fail(pid.error());
  writer.reset();
  Output out;
  // A process may close its output and go on: the end of the text is not the end of the process.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  const bool ended = drain(reader.get(), deadline, limit, out.text) && process.valid() &&
                     wait_readable(process.get(), deadline);
  if (!ended) {
    out.timed_out = true;
    ::kill(-*pid, SIGKILL);
  }
  auto status = wait_process(*pid);
  if (!status) return fail(status.error());
  out.status = *status;
  return out;
}

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id", 256);
  return text ? trim(*text) : "unknown";
}

std::optional<uint64_t> process_start_time(pid_t pid) {
  auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const size_t name_end = text->rfind(')');  // the command name may hold blanks and brackets
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = split(trim(text->substr(name_end + 1)), ' ', true);
  if (fields.size() < 20) return std::nullopt;
  return std::stoull(fields[19]);
}

size_t raise_descriptor_limit(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

}  // namespace clusterctl
