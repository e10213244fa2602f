#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
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
  for (const std::string& dir : split(path == env.end() ? "/usr/bin:/bin" : path->second, ':', true)) {
    const std::string candidate = dir + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
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

Result<pid_t> spawn(const ProcessSpec& spec) {
  const std::string program = spec.argv.empty() ? "" : find_program(spec.argv[0], spec.env);
  if (program.empty()) {
    return fail(Code::kNotFound, "no_such_program", fmt::format("the program {} was not found", spec.argv.empty() ? "" : spec.argv[0]));
  }
  Actions a;
  posix_spawn_file_actions_addopen(&a.actions, 0, "/dev/null", O_RDONLY, 0);
  // Descriptors are first copied out of the way, so that a target number never hits a source that is still needed.
  std::vector<Fd> moved;
  const auto map_to = [&](int from, int to) {
    moved.emplace_back(::fcntl(from, F_DUPFD_CLOEXEC, 100));
    posix_spawn_file_actions_adddup2(&a.actions, moved.back().get(), to);
  };
  if (spec.output >= 0) {
    map_to(spec.output, 1);
  } else {
    posix_spawn_file_actions_addopen(&a.actions, 1, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&a.actions, 1, 2);
  int next = 3;
  for (const auto& [from, to] : spec.keep) {
    map_to(from, to);
    next = std::max(next, to + 1);
  }
  posix_spawn_file_actions_addclosefrom_np(&a.actions, next);
  if (!spec.cwd.empty()) posix_spawn_file_actions_addchdir_np(&a.actions, spec.cwd.c_str());

  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&a.attributes, &none);
  posix_spawnattr_setsigdefault(&a.attributes, &all);
  if (spec.new_session) flags |= POSIX_SPAWN_SETSID;
  posix_spawnattr_setflags(&a.attributes, flags);

  std::vector<char*> argv, envp;
  for (const std::string& arg : spec.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> env;
  for (const auto& [key, value] : spec.env) env.push_back(key + "=" + value);
  for (std::string& entry : env) envp.push_back(entry.data());
  envp.push_back(nullptr);

  pid_t pid = 0;
  const int rc = ::posix_spawn(&pid, program.c_str(), &a.actions, &a.attributes, argv.data(), envp.data());
  if (rc != 0) {
    errno = rc;
    return fail(errno_error("start", program));
  }
  return pid;
}

Result<ExitStatus> wait_process(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail(Code::kNotFound, "no_child", fmt::format("process {} cannot be waited for: {}", pid, std::strerror(errno)));
  }
  ExitStatus out;
  if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
  if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
  return out;
}

Result<Output> run_process(ProcessSpec spec, std::chrono::milliseconds timeout, size_t limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error("create", "pipe"));
  Fd reader(ends[0]), writer(ends[1]);
  spec.output = writer.get();
  spec.new_session = true;  // its own group, so that the timeout ends its children as well
  const auto pid = spawn(spec);
  if (!pid) return fail(pid.error());
  writer.reset();
  Output out;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  char buffer[65536];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd p{reader.get(), POLLIN, 0};
    const int ready = ::poll(&p, 1, static_cast<int>(std::max<long>(0, left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      out.timed_out = true;
      ::kill(-*pid, SIGKILL);
      break;
    }
    const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.text.append(buffer, std::min(static_cast<size_t>(n), limit - std::min(limit, out.text.size())));
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

}  // namespace clusterctl
