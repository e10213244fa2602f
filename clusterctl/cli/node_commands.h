// The commands of the noun `node`, one maker for each, for node.cpp to put together.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace clusterctl::cli {

CommandPtr make_node_add();
CommandPtr make_node_ls();
CommandPtr make_node_inspect();
CommandPtr make_node_get();  // contiv's spelling: a list, or one node
CommandPtr make_node_rm();
CommandPtr make_node_label();
std::vector<CommandPtr> make_node_identity();  // confirm-hardware, move, rename
CommandPtr make_node_accept();
CommandPtr make_node_reject();
CommandPtr make_node_forget_hostkey();
CommandPtr make_node_allocate();
CommandPtr make_node_history();
CommandPtr make_node_maintenance();  // enter, exit
CommandPtr make_node_reboot();
CommandPtr make_node_work(const std::string& kind);  // a kind of job

}  // namespace clusterctl::cli
