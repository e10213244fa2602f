#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ansible/render.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

// Names that Ansible itself fills or that are words of its language.
constexpr std::array kOwned = {"hostvars",
                               "groups",
                               "group_names",
                               "inventory_hostname",
                               "inventory_hostname_short",
                               "inventory_dir",
                               "inventory_file",
                               "playbook_dir",
                               "play_hosts",
                               "role_name",
                               "role_names",
                               "role_path",
                               "role_uuid",
                               "omit",
                               "vars",
                               "environment",
                               "lookup",
                               "query",
                               "q",
                               "now",
                               "item",
                               "undef",
                               "ansible"};

constexpr std::array kKeywords = {
    "False",   "None",     "True",     "and",    "as",    "assert", "async",  "await",
    "break",   "class",    "continue", "def",    "del",   "elif",   "else",   "except",
    "finally", "for",      "from",     "global", "if",    "import", "in",     "is",
    "lambda",  "nonlocal", "not",      "or",     "pass",  "raise",  "return", "try",
    "while",   "with",     "yield",    "true",   "false", "none"};

template <typename List>
bool listed(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool identifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= 128 && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); }) &&
         !listed(kKeywords, name);
}

tl::unexpected<Error> refuse_variable(std::string_view what, std::string_view name,
                                      std::string_view why, std::string hint = "") {
  return fail(Code::kInvalid, "bad_variable",
              fmt::format("{}: the variable \"{}\" {}", one_line(what),
                          truncate_utf8(one_line(name), 80), why),
              std::move(hint));
}

// Keys inside a value. Ansible does not evaluate them where they stand, but a play that turns a key
// into a value could; and two of them change the type of what they hold.
Status check_keys_within(const Json& value, std::string_view what, std::string_view variable) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      const bool jinja = key.find("{{") != std::string::npos ||
                         key.find("{%") != std::string::npos || key.find("{#") != std::string::npos;
      if (jinja)
        return refuse_variable(
            what, variable,
            fmt::format("has a key with template text: \"{}\"", truncate_utf8(one_line(key), 80)));
      if (key.rfind("__ansible_", 0) == 0)
        return refuse_variable(
            what, variable, fmt::format("has a key that Ansible reserves: \"{}\"", one_line(key)));
      if (auto ok = check_keys_within(inner, what, variable); !ok) return ok;
    }
  } else if (value.is_array()) {
    for (const Json& inner : value) {
      if (auto ok = check_keys_within(inner, what, variable); !ok) return ok;
    }
  }
  return {};
}

}  // namespace

Status check_var_names(const Json& vars, std::string_view what) {
  if (vars.is_null()) return {};
  if (!vars.is_object())
    return fail(Code::kInvalid, "wrong_type",
                fmt::format("{} must be an object of variables, not {}", what, vars.type_name()));
  for (const auto& [name, value] : vars.items()) {
    if (!identifier(name))
      return refuse_variable(what, name, "is no valid name",
                             "letters, digits and _, not beginning with a digit");
    if (name.rfind("ansible_", 0) == 0 && name != "ansible_python_interpreter") {
      return refuse_variable(what, name, "belongs to Ansible",
                             "connection settings are in spec.ssh of the node");
    }
    if (name.rfind("clusterctl_", 0) == 0)
      return refuse_variable(what, name, "belongs to clusterctl");
    if (listed(kOwned, name))
      return refuse_variable(what, name, "belongs to Ansible", "choose another name");
    if (auto ok = check_keys_within(value, what, name); !ok) return ok;
  }
  return {};
}

}  // namespace clusterctl::ansible
