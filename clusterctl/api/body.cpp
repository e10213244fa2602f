#include "api/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool is_json_type(std::string_view value, bool patch) {
  const size_t end = std::min(value.find(';'), value.size());
  const std::string type = lower(trim(value.substr(0, end)));
  return type == "application/json" || (patch && type == "application/merge-patch+json");
}

Result<int64_t> one_etag(std::string_view text) {
  int64_t version = 0;
  if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
    const char* end = text.data() + text.size() - 1;
    const auto [stop, error] = std::from_chars(text.data() + 1, end, version);
    if (error == std::errc() && stop == end) return version;
  }
  return fail(Code::kInvalid, "bad_if_match", "If-Match is not an ETag of this service",
              "send the ETag of the last answer with its quotes, for example \"17\"");
}

}  // namespace

Result<Json> json_body(const Request& request, bool blank_is_empty) {
  if (blank(request.body)) {
    if (blank_is_empty) return Json::object();
    return fail(Code::kInvalid, "no_body", "this request needs a JSON object as its body");
  }
  const auto type = request.headers.get("Content-Type");
  if (!type || !is_json_type(*type, request.method == "PATCH")) {
    return fail(Code::kMediaType, "media_type",
                type ? fmt::format("the body is \"{}\", not application/json",
                                   truncate_utf8(one_line(*type), 80))
                     : "the body has no Content-Type",
                "send Content-Type: application/json");
  }
  return parse_json_object(request.body, "the request body");
}

Status no_body(const Request& request) {
  if (blank(request.body)) return {};
  return fail(Code::kInvalid, "unexpected_body", "this request takes no body");
}

std::string etag(int64_t version) {
  return fmt::format("\"{}\"", version);
}

Result<std::optional<std::vector<int64_t>>> if_match(const Request& request) {
  if (request.headers.count("If-Match") > 1) {
    return fail(Code::kInvalid, "bad_if_match", "If-Match is given twice");
  }
  const auto value = request.headers.get("If-Match");
  if (!value || *value == "*") return std::optional<std::vector<int64_t>>();
  std::vector<int64_t> versions;
  for (const std::string& piece : split(*value, ',')) {
    const auto version = one_etag(trim(piece));
    if (!version) return fail(version.error());
    versions.push_back(*version);
  }
  return std::optional(std::move(versions));
}

Status check_if_match(const Request& request, int64_t version) {
  const auto wanted = if_match(request);
  if (!wanted) return fail(wanted.error());
  if (!*wanted) return {};
  const auto& list = **wanted;
  if (std::find(list.begin(), list.end(), version) != list.end()) return {};
  return fail(Code::kStale, "stale",
              fmt::format("If-Match names another version than the present one, {}", version),
              "read it again and repeat the change");
}

Result<std::optional<std::string>> idempotency_key(const Request& request) {
  if (request.headers.count("Idempotency-Key") > 1) {
    return fail(Code::kInvalid, "bad_idempotency_key", "Idempotency-Key is given twice");
  }
  const auto value = request.headers.get("Idempotency-Key");
  if (!value) return std::optional<std::string>();
  const bool printable = std::all_of(value->begin(), value->end(),
                                     [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (value->empty() || value->size() > 128 || !printable) {
    return fail(Code::kInvalid, "bad_idempotency_key",
                "Idempotency-Key must be 1 to 128 printable ASCII characters without space");
  }
  return std::optional<std::string>(std::string(*value));
}

Response replayed(bool repeated, Response response) {
  if (repeated) response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

}  // namespace clusterctl::api
