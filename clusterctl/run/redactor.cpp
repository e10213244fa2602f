#include "run/redactor.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace clusterctl::run {
namespace {

constexpr std::string_view kMask = "***";

// How a value looks inside JSON text, without the quotes around it.
std::string escaped(const std::string& value, bool ascii) {
  const std::string quoted = Json(value).dump(-1, ' ', ascii, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& values) {
  std::set<std::string> patterns;
  for (const std::string& value : values) {
    if (trim(value).size() < kMinLength) continue;
    patterns.insert({value, escaped(value, true), escaped(value, false)});
    // A long text of several lines, such as a key, is also shown line by line.
    const auto lines = split(value, '\n', true);
    for (const std::string& line : lines) {
      if (lines.size() > 1 && trim(line).size() >= 8) patterns.insert(trim(line));
    }
    if (trim(value) != value) patterns.insert(trim(value));
  }
  patterns_.assign(patterns.begin(), patterns.end());
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& pattern : patterns_)
    by_first_[static_cast<unsigned char>(pattern[0])].push_back(&pattern);
}

// Leftmost, then longest match. Stops, unless at the end, where the text left could still become a
// longer match.
std::string Redactor::scan(std::string_view text, bool at_end, size_t& used) const {
  std::string out;
  size_t plain = 0, i = 0;  // bytes from `plain` to `i` are to be copied
  while (i < text.size()) {
    const std::string_view rest = text.substr(i);
    const std::string* found = nullptr;
    bool undecided = false;
    for (const std::string* pattern : by_first_[static_cast<unsigned char>(rest[0])]) {
      if (rest.size() < pattern->size()) {
        undecided = undecided || (!at_end && pattern->compare(0, rest.size(), rest) == 0);
      } else if (rest.compare(0, pattern->size(), *pattern) == 0) {
        found = pattern;
        break;
      }
    }
    if (undecided) break;
    if (!found) {
      ++i;
      continue;
    }
    out.append(text.substr(plain, i - plain)).append(kMask);
    i += found->size();
    plain = i;
  }
  out.append(text.substr(plain, i - plain));
  used = i;
  return out;
}

std::string Redactor::feed(std::string_view bytes) {
  if (patterns_.empty()) return std::string(bytes);
  held_.append(bytes);
  size_t used = 0;
  std::string out = scan(held_, false, used);
  held_.erase(0, used);
  return out;
}

std::string Redactor::finish() {
  std::string out = replace(held_);
  held_.clear();
  return out;
}

std::string Redactor::replace(std::string_view text) const {
  size_t used = 0;
  return scan(text, true, used);
}

void Redactor::replace_strings(Json& value) const {
  if (value.is_string()) {
    value = replace(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (Json& inner : value) replace_strings(inner);
  }
}

std::string Redactor::replace_in_event(std::string_view line) const {
  if (patterns_.empty() || replace(line) == line) return std::string(line);
  auto event = parse_json_object(line, "event", 64);
  if (!event) return replace(line);
  for (const char* key : {"msg", "stderr", "stdout", "item", "task", "value"}) {
    if (const auto found = event->find(key); found != event->end()) replace_strings(*found);
  }
  return dump_json(*event);
}

}  // namespace clusterctl::run
