// Types of the roles' variables, from their argument_specs: a value that a role would refuse in the
// middle of a run is refused when it is set. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace clusterctl::controller {

struct VariableType {
  std::string type = "str";  // Ansible's word: str, int, float, bool, list, dict, path, raw, …
  std::string elements;      // of a list; empty: anything
  std::vector<std::string> choices;
};
// Of each variable; several where several roles declare it.
using VariableTypes = std::map<std::string, std::vector<VariableType>>;

// One option of an argument_spec.
VariableType type_of(const Json& option);

// kInvalid "wrong_type" or "bad_value" naming the variable, or success. Stricter than Ansible where
// it would guess: true is no text and "no" is no bool. Variables no role knows, nulls and
// references to secrets pass. `what`: "globals".
Status check_types(const Json& vars, const VariableTypes& types, std::string_view what);

}  // namespace clusterctl::controller
