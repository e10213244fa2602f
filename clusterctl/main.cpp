// Picks a subcommand: the daemon, the supervisor of one playbook run, or, for everything else, the
// command line.
#include <cstdio>
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

constexpr Subcommand kSubcommands[] = {
    {"serve", clusterctl::serve},
    {"run-shim", run_shim},
};

}  // namespace

int main(int argc, char** argv, char** env) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == name) return subcommand.run(argc, argv);
  }
  return clusterctl::cli::run(argc, argv, env, CLUSTERCTL_VERSION);
}
