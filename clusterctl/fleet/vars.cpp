#include "fleet/vars.h"

namespace clusterctl::fleet {

const Json* find_var(const Json& vars, std::string_view name) {
  if (!vars.is_object()) return nullptr;
  const auto it = vars.find(name);
  return it == vars.end() || it->is_null() ? nullptr : &*it;
}

std::string var_text(const Json& vars, std::string_view name) {
  const Json* value = find_var(vars, name);
  return value ? plain_text(*value) : "";
}

}  // namespace clusterctl::fleet
