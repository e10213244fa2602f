#include "catalog/catalog.h"

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::catalog {
namespace {

// Not set, as far as a condition is concerned; 0 is a value. The playbooks' filter plugin has the
// same rule.
bool is_empty(const Json* value) {
  if (!value || value->is_null()) return true;
  if (value->is_boolean()) return !value->get<bool>();
  return (value->is_string() || value->is_structured()) &&
         (value->is_string() ? value->get_ref<const std::string&>().empty() : value->empty());
}

const Json* look(const Json& vars, const std::string& name) {
  if (!vars.is_object()) return nullptr;
  const auto it = vars.find(name);
  return it == vars.end() ? nullptr : &*it;
}

bool holds(const std::string& variable, const std::optional<std::string>& wanted, const Json& vars,
           const Json& defaults) {
  const Json* value = look(vars, variable);
  if (!wanted) {
    if (!value || value->is_null()) value = look(defaults, variable);
    return !is_empty(value);
  }
  if (is_empty(value)) value = look(defaults, variable);
  return !is_empty(value) && plain_text(*value) == *wanted;
}

bool any_of(const std::vector<std::string>& wanted, const std::vector<std::string>& have) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
    return std::find(have.begin(), have.end(), w) != have.end();
  });
}

}  // namespace

const Service* Catalog::service(std::string_view name) const {
  for (const Service& s : services_) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

const HostGroup* Catalog::host_group(std::string_view name) const {
  const auto it = groups_.find(std::string(name));
  return it == groups_.end() ? nullptr : &it->second;
}

std::vector<std::string> Catalog::host_group_names() const {
  std::vector<std::string> out;
  for (const auto& [name, group] : groups_) out.push_back(name);
  return out;
}

std::vector<std::string> Catalog::capabilities_for(std::string_view group,
                                                   const std::vector<std::string>& given) const {
  const HostGroup* g = host_group(group);
  return given.empty() && g ? g->capabilities : given;
}

fleet::Role Catalog::role(std::string_view group,
                          const std::vector<std::string>& capabilities) const {
  const HostGroup* g = host_group(group);
  const bool registry = std::any_of(capabilities.begin(), capabilities.end(),
                                    [](const std::string& c) { return c.rfind("dtr-", 0) == 0; });
  return g && g->manager && !registry ? fleet::Role::kManager : fleet::Role::kWorker;
}

std::vector<std::string> Catalog::services_for(std::string_view group,
                                               const std::vector<std::string>& capabilities,
                                               const Json& vars,
                                               std::optional<fleet::Role> given) const {
  const fleet::Role mine = given.value_or(role(group, capabilities));
  std::vector<std::string> out;
  for (const Service& s : services_) {
    const bool here = s.on.all || (s.on.role && *s.on.role == mine) ||
                      any_of(s.on.host_groups, {std::string(group)}) ||
                      any_of(s.on.capabilities, capabilities);
    const bool wanted = std::all_of(s.when.begin(), s.when.end(), [&](const auto& w) {
      return holds(w.first, w.second, vars, defaults_);
    });
    if (here && wanted) out.push_back(s.name);
  }
  return out;
}

std::vector<std::string> Catalog::quorum_services() const {
  std::vector<std::string> out;
  for (const Service& s : services_) {
    if (s.quorum_members) out.push_back(s.name);
  }
  return out;
}

std::vector<std::string> Catalog::services_of_capabilities(std::string_view prefix) const {
  std::vector<std::string> out;
  for (const Service& s : services_) {
    const bool brought = std::any_of(s.on.capabilities.begin(), s.on.capabilities.end(),
                                     [&](const std::string& c) { return c.rfind(prefix, 0) == 0; });
    if (brought) out.push_back(s.name);
  }
  return out;
}

std::vector<std::string> Catalog::needs_of(const Service& s, const Json& vars) const {
  std::vector<std::string> out = s.needs;
  for (const auto& [variable, cases] : s.needs_when) {
    for (const auto& [value, need] : cases) {
      if (holds(variable, value, vars, defaults_)) out.push_back(need);
    }
  }
  return out;
}

}  // namespace clusterctl::catalog
