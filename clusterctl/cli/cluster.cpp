#include "cli/cluster_commands.h"

namespace clusterctl::cli {

Noun cluster_noun() {
  Noun noun{"cluster", "The cluster as a whole", {}, {}, nullptr};
  noun.commands.push_back(make_cluster_update());
  return noun;
}

}  // namespace clusterctl::cli
