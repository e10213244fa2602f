#include "fleet/selector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {

Result<Selector> Selector::parse(std::string_view text) {
  Selector out;
  if (text.size() > 4096)
    return fail(Code::kInvalid, "bad_selector", "the selector is longer than 4096 bytes");
  if (trim(text).empty()) return out;
  for (const std::string& piece : split(text, ',')) {
    const std::string term = trim(piece);
    const size_t equals = term.find('=');
    Term t{trim(term.substr(0, equals)), Op::kPresent, ""};
    if (equals == std::string::npos) {
      if (!t.key.empty() && t.key[0] == '!') {
        t.op = Op::kAbsent;
        t.key = trim(t.key.substr(1));
      }
    } else {
      t.op = Op::kEquals;
      t.value = trim(term.substr(equals + 1));
      if (!t.key.empty() && t.key.back() == '!') {
        t.op = Op::kDiffers;
        t.key = trim(t.key.substr(0, t.key.size() - 1));
      } else if (!t.value.empty() && t.value[0] == '=') {
        t.value = trim(t.value.substr(1));
      }
    }
    if (!check_label(t.key, t.value)) {
      return fail(Code::kInvalid, "bad_selector",
                  fmt::format("{} is not a label condition", shown(term)),
                  "key=value, key!=value, key or !key, separated by commas");
    }
    out.terms_.push_back(std::move(t));
  }
  return out;
}

bool Selector::matches(const std::map<std::string, std::string>& labels) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& t) {
    const auto it = labels.find(t.key);
    const bool present = it != labels.end();
    switch (t.op) {
      case Op::kEquals:
        return present && it->second == t.value;
      case Op::kDiffers:
        return !present || it->second != t.value;
      case Op::kPresent:
        return present;
      case Op::kAbsent:
        return !present;
    }
    return false;
  });
}

}  // namespace clusterctl::fleet
