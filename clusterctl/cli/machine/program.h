// Programs of this machine that a command needs (useradd, systemctl …): run to their end with a
// small environment. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace clusterctl::cli {

// What it wrote. kConflict when it cannot be run or fails, with its own words.
Result<std::string> run_program(std::vector<std::string> argv, std::string_view hint = "");
// It could be run.
bool has_program(const std::string& name);

}  // namespace clusterctl::cli
