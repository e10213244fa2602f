#include "client/rest_client.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace clusterctl::client {
namespace {

constexpr size_t kMaxProblems = 10000;

std::string text_of(const Json& object, std::string_view key) {
  return get_string(object, key).value_or("");
}

std::string_view status_words(int status) {
  switch (code_from_http(status)) {
    case Code::kUnauthenticated:
      return "no valid token";
    case Code::kForbidden:
      return "not allowed";
    case Code::kNotFound:
      return "not found";
    case Code::kTooLarge:
      return "the request is too large";
    case Code::kTooMany:
      return "too many requests";
    case Code::kUnavailable:
      return "the daemon is not ready";
    default:
      return status >= 500 ? "the daemon had an internal error" : "the daemon refused the request";
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  // A segment of dots alone would be taken for "this" or "the parent" on the way.
  if (out == "." || out == "..") return out == "." ? "%2E" : "%2E%2E";
  return out;
}

std::string target(const Request& request) {
  std::string out = request.path;
  char separator = '?';
  for (const auto& [key, value] : request.query) {
    out += separator + escape(key) + "=" + escape(value);
    separator = '&';
  }
  return out;
}

Error foreign_answer(std::string_view server, std::string_view why) {
  return {Code::kInternal,
          "bad_answer",
          fmt::format("the answer of {} is not what clusterctl serve says: {}", server, why),
          "is it a clusterctl daemon?",
          {}};
}

Error error_from_answer(int status, std::string_view body) {
  Error error;
  error.code = code_from_http(status);
  const auto document = parse_json_object(body, "the answer");
  if (document) {
    error.reason = text_of(*document, "code");
    error.message = one_line(text_of(*document, "detail"));
    if (error.message.empty()) error.message = one_line(text_of(*document, "title"));
    error.hint = one_line(text_of(*document, "hint"));
    if (const auto list = document->find("problems"); list != document->end() && list->is_array()) {
      for (const Json& p : *list) {
        if (error.problems.size() == kMaxProblems) break;
        if (!p.is_object()) continue;
        error.problems.push_back({text_of(p, "code"), one_line(text_of(p, "message")),
                                  one_line(text_of(p, "hint")), text_of(p, "node")});
      }
    }
  }
  if (error.reason.empty()) error.reason = code_name(error.code);
  if (error.message.empty()) error.message = fmt::format("{} ({})", status_words(status), status);
  return error;
}

}  // namespace clusterctl::client
