// contiv's spellings that have no route behind them, for command.cpp to put into the tree.
#pragma once

#include "cli/command.h"

namespace clusterctl::cli {

CommandPtr make_discover();
Noun config_noun();

}  // namespace clusterctl::cli
