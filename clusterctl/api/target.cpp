#include "api/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

constexpr size_t kMaxQuery = 64;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(Code::kInvalid, "bad_escape", "a percent escape in the URL is malformed");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return fail(Code::kInvalid, "bad_escape", "the URL contains a NUL");
    out += c;
  }
  if (!valid_utf8(out)) return fail(Code::kInvalid, "bad_utf8", "the URL is not UTF-8");
  return out;
}

Status parse_path(std::string_view path, Request& request) {
  path.remove_prefix(1);  // the reader has checked that it begins with a slash
  if (path.empty()) return {};
  for (const std::string& piece : split(path, '/')) {
    auto segment = decode(piece, false);
    if (!segment) return fail(segment.error());
    if (segment->find('/') != std::string::npos) {
      return fail(Code::kInvalid, "bad_escape", "an encoded slash is not allowed in the path");
    }
    const bool control = std::any_of(segment->begin(), segment->end(),
                                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (control) return fail(Code::kInvalid, "bad_escape", "a control character is in the path");
    request.segments.push_back(std::move(*segment));
  }
  return {};
}

Status parse_query(std::string_view text, Request& request) {
  for (const std::string& piece : split(text, '&', true)) {
    const size_t equals = std::min(piece.find('='), piece.size());
    const auto name = decode(std::string_view(piece).substr(0, equals), true);
    if (!name) return fail(name.error());
    const size_t start = std::min(equals + 1, piece.size());
    auto value = decode(std::string_view(piece).substr(start), true);
    if (!value) return fail(value.error());
    if (name->empty()) {
      return fail(Code::kInvalid, "bad_query", "a query parameter has no name");
    }
    if (request.query.size() >= kMaxQuery) {
      return fail(Code::kInvalid, "bad_query",
                  fmt::format("more than {} query parameters", kMaxQuery));
    }
    if (!request.query.emplace(*name, std::move(*value)).second) {
      return fail(
          Code::kInvalid, "duplicate_query",
          fmt::format("\"{}\" is given twice in the URL", truncate_utf8(one_line(*name), 40)));
    }
  }
  return {};
}

}  // namespace

Status parse_target(Request& request) {
  const std::string_view target = request.target;
  request.segments.clear();
  request.query.clear();
  if (target.empty() || target.front() != '/' || target.find('#') != std::string_view::npos) {
    return fail(Code::kInvalid, "bad_target", "the target of the request is not a path");
  }
  const size_t mark = std::min(target.find('?'), target.size());
  if (auto path = parse_path(target.substr(0, mark), request); !path) return path;
  return mark == target.size() ? Status() : parse_query(target.substr(mark + 1), request);
}

}  // namespace clusterctl::api
