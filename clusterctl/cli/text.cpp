#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"

namespace clusterctl::cli {
namespace {

struct Range {
  char32_t first, last;
};
constexpr Range kZero[] = {{0x300, 0x36f},   {0x483, 0x489},    {0x591, 0x5bd},   {0x610, 0x61a},
                           {0x64b, 0x65f},   {0x6d6, 0x6dc},    {0x93c, 0x93c},   {0x941, 0x948},
                           {0x94d, 0x94d},   {0xe31, 0xe31},    {0xe34, 0xe3a},   {0xe47, 0xe4e},
                           {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x200b, 0x200f}, {0x202a, 0x202e},
                           {0x2060, 0x2064}, {0x20d0, 0x20ff},  {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
                           {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};
constexpr Range kWide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t N>
bool in(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Takes one character from valid UTF-8; bytes that are none count as one character each.
char32_t take(std::string_view& rest) {
  const auto c = static_cast<unsigned char>(rest[0]);
  const size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
  if (n == 1 || rest.size() < n) {
    rest.remove_prefix(1);
    return c;
  }
  char32_t out = c & (0xff >> (n + 1));
  for (size_t i = 1; i < n; ++i) out = out << 6 | (static_cast<unsigned char>(rest[i]) & 0x3f);
  rest.remove_prefix(n);
  return out;
}

int width_of(char32_t c) {
  return in(kZero, c) ? 0 : in(kWide, c) ? 2 : 1;
}

// Bidirectional overrides could make a line read differently from what it says.
bool harmful(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::string sanitize(std::string_view text, bool keep_lines) {
  std::string valid;
  if (!valid_utf8(text)) {
    const Json repaired = Json::parse(dump_json(Json(std::string(text))), nullptr, false);
    valid = repaired.is_string() ? repaired.get<std::string>() : std::string();
    text = valid;
  }
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take(text);
    if (keep_lines && (c == '\n' || c == '\t')) {
      out += static_cast<char>(c);
    } else if (harmful(c)) {
      out += ' ';
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += width_of(take(text));
  return width;
}

std::string fit(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  int used = 0;
  while (!text.empty()) {
    const std::string_view before = text;
    const int w = width_of(take(text));
    if (used + w > width - 1) break;
    used += w;
    out += before.substr(0, before.size() - text.size());
  }
  return width > 0 ? out + "…" : "";
}

std::string clean(std::string_view text) {
  return sanitize(text, false);
}
std::string clean_lines(std::string_view text) {
  return sanitize(text, true);
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    cell = clean(cell);
    if (cell.empty()) cell = "-";
  }
  cells.resize(headers_.size(), "-");
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::fitted(int limit) const {
  std::vector<int> widths;
  for (const std::string& h : headers_) widths.push_back(display_width(h));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  if (limit <= 0) return widths;
  constexpr int kGap = 2, kLeast = 4;
  const auto total = [&] {
    int sum = -kGap;
    for (const int w : widths) sum += w + kGap;
    return sum;
  };
  const auto names_row = [&](size_t i) { return headers_[i] == "ID" || headers_[i] == "NAME"; };
  for (const bool names_too : {false, true}) {
    while (total() > limit) {
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        if (widths[i] <= kLeast || (names_row(i) && !names_too)) continue;
        if (widest == widths.size() || widths[i] >= widths[widest]) widest = i;
      }
      if (widest == widths.size()) break;
      --widths[widest];
    }
  }
  while (widths.size() > 1 && total() > limit) widths.pop_back();
  if (total() > limit) widths[0] = limit;
  return widths;
}

std::string Table::render(int limit) const {
  const std::vector<int> widths = fitted(limit);
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = fit(cells[i], widths[i]);
      out += cell;
      if (i + 1 < widths.size())
        out.append(static_cast<size_t>(widths[i] - display_width(cell) + 2), ' ');
    }
    out += '\n';
  };
  line(headers_);
  for (const auto& row : rows_) line(row);
  return out;
}

const Json& field(const Json& object, std::string_view key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

std::string text(const Json& value) {
  if (value.is_string()) return clean(value.get_ref<const std::string&>());
  if (value.is_null() || value.is_structured()) return "";
  return dump_json(value);
}

std::string text(const Json& object, std::string_view key) {
  return text(field(object, key));
}

int64_t number(const Json& value) {
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> out;
  if (list.is_array()) {
    for (const Json& item : list) out.push_back(text(item));
  }
  return out;
}

std::string short_time(const Json& value) {
  const auto t = parse_time(text(value));
  if (!t) return text(value);
  std::string out = format_time(*t).substr(0, 19);
  out[10] = ' ';
  return out;
}

std::string duration(const Json& from, const Json& to) {
  const auto a = parse_time(text(from));
  const auto b = parse_time(text(to));
  return a && b && *b >= *a ? format_duration(*b - *a) : "";
}

std::string count(size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace clusterctl::cli
