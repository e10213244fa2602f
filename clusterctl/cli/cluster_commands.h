// The noun `cluster` and its commands, one maker for each, for cluster.cpp to put together.
#pragma once

#include "cli/command.h"

namespace clusterctl::cli {

Noun cluster_noun();
CommandPtr make_cluster_update();
CommandPtr make_cluster_token();
CommandPtr make_cluster_init();
CommandPtr make_cluster_join();
CommandPtr make_cluster_leave();

}  // namespace clusterctl::cli
