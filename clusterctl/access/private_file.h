// Files with keys in them. Any thread.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::access {

// The content of a file that only the daemon's user (or root) can read or change; anything else is
// kInvalid "bad_mode" that says how to mend it. kNotFound when there is no such file.
Result<std::string> read_private_file(const fs::path& path);

}  // namespace clusterctl::access
