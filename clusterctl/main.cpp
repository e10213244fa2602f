#include <cstdio>
#include <string_view>

#include "run/runs.h"

namespace {

struct Subcommand {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

int run_shim(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: clusterctl run-shim DIR\n");
    return clusterctl::kExitUsage;
  }
  return clusterctl::run::run_shim(argv[2]);
}

// Not for people: called by the program itself.
constexpr Subcommand kSubcommands[] = {
    {"run-shim", run_shim},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == name) return subcommand.run(argc, argv);
  }
  std::fprintf(stderr, "clusterctl: unknown command \"%s\"\n", argc > 1 ? argv[1] : "");
  return clusterctl::kExitUsage;
}
