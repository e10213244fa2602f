#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "run/supervisor.h"

namespace clusterctl::run {
namespace {

// Own session, no terminal, nothing of the daemon's: neither descriptors, nor folder, nor signals
// meant for it.
void detach() {
  ::setsid();
  (void)!::chdir("/");
  ::umask(077);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2})
    ::signal(signal, SIG_IGN);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

void tell(Fd& ready, std::string_view text) {
  (void)!write_all(ready.get(), text);
  ready.reset();
}

[[noreturn]] void shim(const RunDir& dir, Fd ready) {
  detach();
  {
    Supervisor supervisor(dir);
    std::string problem;
    switch (supervisor.begin(problem)) {
      case Supervisor::Begin::kStarted:
        tell(ready, "ok");
        supervisor.run();
        break;
      case Supervisor::Begin::kRanAlready:
        tell(ready, "ok");
        break;
      case Supervisor::Begin::kFailed:
        tell(ready, problem);
        break;
    }
  }
  ::_exit(0);
}

}  // namespace

int run_shim(const fs::path& dir) {
  if (!dir.is_absolute()) {
    fmt::print(stderr, "run-shim needs the absolute path of a run directory\n");
    return kExitUsage;
  }
  ::close_range(3, ~0U, 0);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return kExitInternal;
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return kExitInternal;
  if (pid == 0) {
    reader.reset();
    shim(RunDir{dir}, std::move(writer));
  }
  writer.reset();
  std::string answer;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    answer.append(buffer, static_cast<size_t>(n));
  }
  if (answer == "ok") return kExitOk;
  fmt::print("{}\n", answer.empty() ? "the shim died before it could start the run" : answer);
  return kExitInternal;
}

}  // namespace clusterctl::run
