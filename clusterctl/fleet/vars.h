// Looking into a node's effective variables. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace clusterctl::fleet {

// nullptr: not set, or null.
const Json* find_var(const Json& vars, std::string_view name);
// Its text, or "" when it is not set.
std::string var_text(const Json& vars, std::string_view name);

}  // namespace clusterctl::fleet
