// Keeps secret values out of everything that is stored, shown or logged: they are moved under
// `secrets/` and referred to by name. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "controller/variable_types.h"
#include "job/host.h"

namespace clusterctl::controller {

// Which variables are secret: those whose argument_spec says no_log, and those whose name looks
// like it.
class SecretNames {
 public:
  SecretNames() = default;
  explicit SecretNames(std::set<std::string> no_log) : no_log_(std::move(no_log)) {}
  bool is_secret(std::string_view name) const;

 private:
  std::set<std::string> no_log_;
};

// What the roles say of their variables: all names, and those marked no_log.
struct RoleVariables {
  std::set<std::string> known;
  std::set<std::string> no_log;
  VariableTypes types;
};
// Reads roles/*/meta/argument_specs.yml. Unreadable files are Errors: a missed no_log would show a
// secret.
Result<RoleVariables> read_role_variables(const fs::path& roles);

// `vars` with secret values replaced by {"secret": "<scope>.<name>"}; the values go to `values`. A
// reference that comes back means unchanged and must exist in `existing` (any value type), else
// kInvalid "no_such_secret".
Result<Json> hide_secrets(const Json& vars, const SecretNames& names, const std::string& scope,
                          const std::map<std::string, Json>& existing,
                          std::map<std::string, Json>& values);

// The inverse, for a run. kInternal when a reference has no value.
Result<job::Resolved> resolve_secrets(const Json& vars, const std::map<std::string, Json>& secrets);

// The name in {"secret": "<name>"} and nothing else.
std::optional<std::string> secret_reference(const Json& value);

// Names of all secrets that `vars` refers to.
std::set<std::string> secret_references(const Json& vars);

}  // namespace clusterctl::controller
