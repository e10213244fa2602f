// Picks a subcommand: the daemon, the supervisor of one playbook run, or, for everything else, the
// command line.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/app.h"
#include "run/runs.h"
#include "serve.h"

namespace {

struct Subcommand {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

// Not for people: the daemon starts it for each playbook run.
int run_shim(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: clusterctl run-shim DIR\n");
    return clusterctl::kExitUsage;
  }
  return clusterctl::run::run_shim(argv[2]);
}

// Whoever opens a file first would get the number of a stream that the caller has closed, and what
// is meant for people would go into that file. Is standard output among them?
bool fill_closed_streams() {
  bool output = false;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    output = output || fd == STDOUT_FILENO;
    if (open("/dev/null", O_RDWR) != fd) std::abort();  // the lowest free number is this one
  }
  return output;
}

constexpr Subcommand kSubcommands[] = {
    {"serve", clusterctl::serve},
    {"run-shim", run_shim},
};

}  // namespace

int main(int argc, char** argv, char** env) {
  const bool no_output = fill_closed_streams();
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == name) return subcommand.run(argc, argv);
  }
  if (no_output) {
    std::fprintf(stderr, "error: standard output is closed; nothing was done\nhint: >/dev/null\n");
    return clusterctl::kExitOutput;
  }
  return clusterctl::cli::run(argc, argv, env, CLUSTERCTL_VERSION);
}
