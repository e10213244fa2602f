#include "controller/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "base/yaml.h"

namespace clusterctl::controller {
namespace {

constexpr std::array<std::string_view, 9> kSecretWords{"password",    "passwd",     "passphrase",
                                                       "secret",      "token",      "api_key",
                                                       "private_key", "credential", "secret_key"};

class Hider {
 public:
  Hider(const SecretNames& names, const std::map<std::string, Json>& existing,
        std::map<std::string, Json>& values)
      : names_(names), existing_(existing), values_(values) {}

  Result<Json> hide(const Json& value, const std::string& path, bool secret, bool listed = false) {
    if (const auto name = secret_reference(value)) {
      if (!existing_.count(*name)) {
        return fail(Code::kInvalid, "no_such_secret",
                    fmt::format("there is no secret \"{}\"", one_line(*name)),
                    "send the value itself, or a reference exactly as it was shown");
      }
      return value;
    }
    if (secret && !value.is_null()) {
      // Places in a list move, and an older value may still be referred to by its old place.
      std::string name = path;
      for (int n = 2; listed && (existing_.count(name) || values_.count(name)); ++n)
        name = fmt::format("{}~{}", path, n);
      values_[name] = value;
      return Json{{"secret", name}};
    }
    if (value.is_array()) {
      Json out = Json::array();
      for (const Json& item : value) {
        auto hidden = hide(item, fmt::format("{}.{}", path, out.size()), false, true);
        if (!hidden) return hidden;
        out.push_back(std::move(*hidden));
      }
      return out;
    }
    if (!value.is_object()) return value;
    Json out = Json::object();
    for (const auto& [key, item] : value.items()) {
      auto hidden = hide(item, path + "." + key, names_.is_secret(key), listed);
      if (!hidden) return hidden;
      out[key] = std::move(*hidden);
    }
    return out;
  }

 private:
  const SecretNames& names_;
  const std::map<std::string, Json>& existing_;
  std::map<std::string, Json>& values_;
};

void collect_strings(const Json& value, std::vector<std::string>& out) {
  if (value.is_string() && !value.get<std::string>().empty())
    out.push_back(value.get<std::string>());
  if (value.is_number()) out.push_back(dump_json(value));
  if (value.is_structured()) {
    for (const Json& item : value) collect_strings(item, out);
  }
}

Result<Json> resolve(const Json& value, const std::map<std::string, Json>& secrets,
                     std::vector<std::string>& values) {
  if (const auto name = secret_reference(value)) {
    const auto it = secrets.find(*name);
    if (it == secrets.end()) {
      return fail(Code::kInternal, "no_such_secret",
                  fmt::format("the value of secret \"{}\" is missing", *name),
                  "set the variable again");
    }
    collect_strings(it->second, values);
    return it->second;
  }
  Json out = value;
  if (value.is_structured()) {
    for (auto it = out.begin(); it != out.end(); ++it) {
      auto item = resolve(*it, secrets, values);
      if (!item) return item;
      *it = std::move(*item);
    }
  }
  return out;
}

void collect_options(const Json& options, RoleVariables& out) {
  if (!options.is_object()) return;
  for (const auto& [name, option] : options.items()) {
    out.known.insert(name);
    if (option.is_object() && get_bool(option, "no_log").value_or(false)) out.no_log.insert(name);
    if (option.is_object()) out.types[name].push_back(type_of(option));
  }
}

}  // namespace

bool SecretNames::is_secret(std::string_view name) const {
  const std::string low = lower(name);
  return no_log_.count(std::string(name)) != 0 ||
         std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](std::string_view w) { return low.find(w) != std::string::npos; });
}

Result<RoleVariables> read_role_variables(const fs::path& roles) {
  RoleVariables out;
  std::error_code ec;
  for (const auto& role : fs::directory_iterator(roles, ec)) {
    const fs::path file = role.path() / "meta" / "argument_specs.yml";
    if (!fs::exists(file, ec)) continue;
    auto document = read_yaml(file);
    if (!document) return fail(document.error());
    const Json specs = get_object(*document, "argument_specs").value_or(Json::object());
    for (const auto& [door, spec] : specs.items()) {
      if (spec.is_object() && spec.contains("options")) collect_options(spec["options"], out);
    }
  }
  return out;
}

Result<Json> hide_secrets(const Json& vars, const SecretNames& names, const std::string& scope,
                          const std::map<std::string, Json>& existing,
                          std::map<std::string, Json>& values) {
  return Hider(names, existing, values).hide(vars, scope, false);
}

Result<job::Resolved> resolve_secrets(const Json& vars,
                                      const std::map<std::string, Json>& secrets) {
  job::Resolved out;
  auto resolved = resolve(vars, secrets, out.secret_values);
  if (!resolved) return fail(resolved.error());
  out.vars = std::move(*resolved);
  return out;
}

std::optional<std::string> secret_reference(const Json& value) {
  if (!value.is_object() || value.size() != 1 || !value.contains("secret") ||
      !value["secret"].is_string())
    return std::nullopt;
  return value["secret"].get<std::string>();
}

std::set<std::string> secret_references(const Json& vars) {
  std::set<std::string> out;
  if (const auto name = secret_reference(vars)) {
    out.insert(*name);
  } else if (vars.is_structured()) {
    for (const Json& item : vars) out.merge(secret_references(item));
  }
  return out;
}

}  // namespace clusterctl::controller
