// Picks a subcommand; `serve` and `run-shim` are the daemon's, everything else is the command line.
#include "cli/app.h"

int main(int argc, char** argv, char** env) {
  return clusterctl::cli::run(argc, argv, env, CLUSTERCTL_VERSION);
}
