// Text for people: tables that line up with any script, safe words of others, tolerant reading of
// answers. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace clusterctl::cli {

// Columns that a terminal uses for valid UTF-8 text: combining marks 0, wide East Asian characters
// and emoji 2.
int display_width(std::string_view text);
// At most `width` columns, with "…" when something was cut.
std::string fit(std::string_view text, int width);
// One line without control characters (escape sequences of others could redraw the terminal) and
// with valid UTF-8.
std::string clean(std::string_view text);
// The same for text of many lines: newlines and tabs stay.
std::string clean_lines(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Left-aligned columns two blanks apart, no blank at the end of a line; an empty cell is "-".
  // With a `limit` no line is wider than that: the widest columns are cut ("…"), those by which a
  // row is named (ID, NAME) last; when even that is too wide, columns are left out from the right.
  std::string render(int limit = 0) const;

 private:
  std::vector<int> fitted(int limit) const;

  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

// A member of an answer, null when it is not there or `object` is none.
const Json& field(const Json& object, std::string_view key);
// A value as text: texts themselves, null and structures as "", others as JSON. Always clean.
std::string text(const Json& value);
std::string text(const Json& object, std::string_view key);
int64_t number(const Json& value);
std::vector<std::string> texts(const Json& list);
// "2026-11-30T10:26:02.123Z" as "2026-11-30 10:26:02".
std::string short_time(const Json& value);
// Between two times of an answer, "" when one is missing.
std::string duration(const Json& from, const Json& to);
// "1 node", "3 nodes".
std::string count(size_t n, std::string_view noun);

}  // namespace clusterctl::cli
