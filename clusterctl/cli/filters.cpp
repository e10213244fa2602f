#include "cli/filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

tl::unexpected<Error> refused(const std::string& given, const std::string& why,
                              std::string hint = "") {
  return fail(Code::kInvalid, "usage", fmt::format("--filter {}: {}", one_line(given), why),
              std::move(hint));
}

Result<std::pair<Filter, std::string>> parse_one(const std::vector<Filter>& known,
                                                 const std::string& given) {
  const size_t equals = given.find('=');
  const std::string key = given.substr(0, equals);
  std::vector<std::string> keys;
  for (const Filter& f : known) keys.emplace_back(f.key);
  const auto it =
      std::find_if(known.begin(), known.end(), [&](const Filter& f) { return f.key == key; });
  if (equals == std::string::npos || it == known.end()) {
    const std::string near = nearest(key, keys);
    return refused(given, fmt::format("expected one of {}=…", join(keys, "=…, ")),
                   near.empty() || near == key ? "" : fmt::format("did you mean {}?", near));
  }
  const std::string value = given.substr(equals + 1);
  if (value.empty()) return refused(given, fmt::format("{} needs a value", it->key));
  if (it->words.empty()) return std::pair{*it, value};
  for (const std::string& word : it->words) {
    if (lower(word) == lower(value)) return std::pair{*it, word};
  }
  const std::string near = nearest(value, it->words);
  return refused(given, fmt::format("{} is one of {}", it->key, join(it->words, ", ")),
                 near.empty() ? "" : fmt::format("did you mean {}?", near));
}

}  // namespace

Result<Filters> Filters::parse(const std::vector<Filter>& known,
                               const std::vector<std::string>& given) {
  Filters out;
  std::vector<std::string> seen;
  for (const std::string& text : given) {
    auto one = parse_one(known, text);
    if (!one) return fail(one.error());
    const Filter& f = one->first;
    const std::string what(f.query.empty() ? f.key : f.query);
    if (contains(seen, what))
      return refused(text, fmt::format("{} is given twice, and all filters must hold", f.key));
    seen.push_back(what);
    if (f.query.empty()) {
      out.here_.push_back(std::move(*one));
    } else {
      out.query_.emplace_back(f.query, one->second);
    }
  }
  return out;
}

Json Filters::of(const Json& rows) const {
  if (here_.empty()) return rows;
  Json out = Json::array();
  for (const Json& row : rows) {
    const bool fits = std::all_of(here_.begin(), here_.end(), [&](const auto& f) {
      const Json* value = &row;
      for (const std::string_view member : f.first.member) value = &field(*value, member);
      return text(*value) == f.second;
    });
    if (fits) out.push_back(row);
  }
  return out;
}

std::vector<std::string> filter_words(const std::vector<Filter>& known) {
  std::vector<std::string> out;
  for (const Filter& f : known) {
    if (f.words.empty()) out.push_back(std::string(f.key) + "=");
    for (const std::string& word : f.words) out.push_back(std::string(f.key) + "=" + word);
  }
  return out;
}

}  // namespace clusterctl::cli
