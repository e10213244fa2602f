#include "cli/vars.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxFile = 1 << 20;

Result<Json> read_vars_file(const std::string& name) {
  const fs::path path(name);
  std::error_code ec;
  if (!fs::is_regular_file(path, ec)) {
    return fail(Code::kInvalid, "no_file",
                fmt::format("--extra-vars: {} is no file", one_line(name)));
  }
  auto content = read_file(path, kMaxFile);
  if (!content) return fail(content.error());
  const std::string extension = path.extension().string();
  if (extension != ".yml" && extension != ".yaml") {
    return parse_json_object(*content, one_line(name), true);
  }
  auto value = parse_yaml(*content, one_line(name));
  if (value && value->is_null()) return Json::object();
  if (value && !value->is_object()) {
    return fail(
        Code::kInvalid, "not_an_object",
        fmt::format("{} must hold variables, not a {}", one_line(name), value->type_name()));
  }
  return value;
}

struct Assignment {
  std::string name;
  std::optional<std::string> value;  // nullopt: remove
};

Result<Assignment> split_assignment(const std::string& given, bool removals) {
  const size_t equals = given.find('=');
  if (equals != std::string::npos && equals > 0)
    return Assignment{given.substr(0, equals), given.substr(equals + 1)};
  if (removals && given.size() > 1 && given.ends_with('-') && equals == std::string::npos) {
    return Assignment{given.substr(0, given.size() - 1), std::nullopt};
  }
  return fail(Code::kInvalid, "usage",
              fmt::format("\"{}\" is not of the form name=value", one_line(given)),
              removals ? "name- removes a name" : "");
}

Json typed(const std::string& value) {
  auto json = parse_json(value, "value");
  if (!json || json->is_number_float()) return value;
  return std::move(*json);
}

}  // namespace

Result<Json> parse_extra_vars(const std::vector<std::string>& texts) {
  Json out = Json::object();
  for (const std::string& given : texts) {
    auto vars = given.starts_with('@') ? read_vars_file(given.substr(1))
                                       : parse_json_object(given, "--extra-vars", true);
    if (!vars) {
      Error error = vars.error();
      error.code = Code::kInvalid;
      if (error.hint.empty())
        error.hint = "give a JSON object like '{\"name\": \"value\"}', or @FILE";
      return fail(std::move(error));
    }
    for (const auto& [key, value] : vars->items()) out[key] = value;
  }
  return out;
}

namespace {

// Which of two would count is not to be guessed.
Status add(Json& out, const std::string& name, Json value) {
  const auto [at, fresh] = out.emplace(name, value);
  if (fresh || *at == value) return {};
  return fail(Code::kInvalid, "usage", fmt::format("{} is given twice", name), "give it one value");
}

}  // namespace

Result<Json> parse_assignments(const std::vector<std::string>& texts, bool removals) {
  Json out = Json::object();
  for (const std::string& given : texts) {
    auto a = split_assignment(given, removals);
    if (!a) return fail(a.error());
    if (auto one = add(out, a->name, a->value ? typed(*a->value) : Json()); !one)
      return fail(one.error());
  }
  return out;
}

Result<Json> parse_labels(const std::vector<std::string>& texts, bool removals) {
  Json out = Json::object();
  for (const std::string& given : texts) {
    auto a = split_assignment(given, removals);
    if (!a) return fail(a.error());
    if (auto one = add(out, a->name, a->value ? Json(*a->value) : Json()); !one)
      return fail(one.error());
  }
  return out;
}

}  // namespace clusterctl::cli
