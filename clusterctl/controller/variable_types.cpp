#include "controller/variable_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/strings.h"

namespace clusterctl::controller {
namespace {

bool is_reference(const Json& value) {
  return value.is_object() && value.size() == 1 && value.contains("secret") &&
         value["secret"].is_string();
}

// Templates of the operator are never evaluated, so a text is a number only when it reads as one.
template <typename Number>
bool reads_as(const Json& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

struct TypeRow {
  std::string_view type;
  bool (*fits)(const Json& value);
  std::string_view words, hint;
};

// A whole number loses nothing as a text; 20.10 has become 20.1 by now.
bool fits_text(const Json& value) {
  return value.is_string() || value.is_number_integer();
}

constexpr std::array kTypes{
    TypeRow{"str", fits_text, "a text", "quote it"},
    TypeRow{"path", [](const Json& v) { return v.is_string(); }, "a path", "quote it"},
    TypeRow{"int", [](const Json& v) { return v.is_number_integer() || reads_as<int64_t>(v); },
            "a whole number", "for example 5"},
    TypeRow{"float", [](const Json& v) { return v.is_number() || reads_as<double>(v); }, "a number",
            "for example 1.5"},
    TypeRow{"bool", [](const Json& v) { return v.is_boolean(); }, "true or false",
            "without quotes"},
    TypeRow{"list", [](const Json& v) { return v.is_array(); }, "a list", "for example [\"a\"]"},
    TypeRow{"dict", [](const Json& v) { return v.is_object(); }, "an object",
            "for example {\"a\": \"b\"}"},
};

const TypeRow* row(std::string_view type) {
  const auto it =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) { return r.type == type; });
  return it == kTypes.end() ? nullptr : &*it;  // raw, json, bytes …: anything goes
}

std::string_view word_of(const Json& value) {
  if (value.is_string()) return "a text";
  if (value.is_number()) return "a number";
  if (value.is_boolean()) return "true or false";
  return value.is_array() ? "a list" : "an object";
}

Status wrong(std::string_view what, std::string_view name, const TypeRow& wanted,
             const Json& value) {
  return fail(Code::kInvalid, "wrong_type",
              fmt::format("{}: {} has to be {}, not {}", what, name, wanted.words, word_of(value)),
              std::string(wanted.hint));
}

Status check_one(std::string_view what, const std::string& name, const Json& value,
                 const VariableType& type) {
  if (const TypeRow* wanted = row(type.type); wanted && !wanted->fits(value))
    return wrong(what, name, *wanted, value);
  if (const TypeRow* inner = row(type.elements); inner && value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (!inner->fits(value[i]) && !is_reference(value[i]))
        return wrong(what, fmt::format("{}[{}]", name, i), *inner, value[i]);
    }
  }
  if (type.choices.empty() || !value.is_string()) return {};
  const std::string& text = value.get_ref<const std::string&>();
  if (std::find(type.choices.begin(), type.choices.end(), text) != type.choices.end()) return {};
  return fail(Code::kInvalid, "bad_value",
              fmt::format("{}: {} is \"{}\"", what, name, truncate_utf8(one_line(text), 60)),
              "one of: " + join(type.choices, ", "));
}

}  // namespace

VariableType type_of(const Json& option) {
  VariableType out;
  out.type = get_string(option, "type", "str").value_or("raw");
  out.elements = get_string(option, "elements").value_or("");
  out.choices = get_strings(option, "choices").value_or(std::vector<std::string>());
  return out;
}

Status check_types(const Json& vars, const VariableTypes& types, std::string_view what) {
  if (!vars.is_object()) return {};
  for (const auto& [name, value] : vars.items()) {
    const auto known = types.find(name);
    if (known == types.end() || value.is_null() || is_reference(value)) continue;
    Status first;
    bool fits = false;
    for (const VariableType& type : known->second) {
      const auto ok = check_one(what, name, value, type);
      fits = fits || ok.has_value();
      if (!ok && first) first = ok;
    }
    if (!fits) return first;
  }
  return {};
}

}  // namespace clusterctl::controller
