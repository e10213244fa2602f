#include "api/http.h"

#include <fmt/format.h>
#include <strings.h>

#include <charconv>

#include "base/mask.h"
#include "base/strings.h"

namespace clusterctl::api {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) return value;
  }
  return std::nullopt;
}

size_t Headers::count(std::string_view name) const {
  size_t n = 0;
  for (const auto& [key, value] : fields_) n += same_name(key, name);
  return n;
}

const std::string& Request::param(const std::string& name) const {
  static const std::string kNone;
  const auto it = params.find(name);
  return it == params.end() ? kNone : it->second;
}

std::string Request::query_string(const std::string& name, std::string_view fallback) const {
  const auto it = query.find(name);
  return it == query.end() ? std::string(fallback) : it->second;
}

Result<int64_t> Request::query_int(const std::string& name, int64_t fallback, int64_t min,
                                   int64_t max) const {
  const auto it = query.find(name);
  if (it == query.end()) return fallback;
  const std::string& text = it->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return fail(Code::kInvalid, "bad_query",
                fmt::format("\"{}\" must be a number from {} to {}, not \"{}\"", name, min, max,
                            truncate_utf8(one_line(text), 40)));
  }
  return value;
}

Result<bool> Request::query_bool(const std::string& name, bool fallback) const {
  const auto it = query.find(name);
  if (it == query.end()) return fallback;
  const std::string& text = it->second;
  if (text == "true" || text == "1" || text.empty()) return true;
  if (text == "false" || text == "0") return false;
  return fail(Code::kInvalid, "bad_query",
              fmt::format("\"{}\" must be true or false, not \"{}\"", name,
                          truncate_utf8(one_line(text), 40)));
}

std::string loggable_path(const Request& request) {
  return truncate_utf8(one_line(mask_path(request.target.substr(0, request.target.find('?')))),
                       200);
}

Response Response::json(const Json& value, int status) {
  Response out;
  out.status = status;
  out.content_type = "application/json";
  out.body = dump_json(value) + "\n";
  return out;
}

Response Response::json(SharedText text) {
  Response out;
  out.content_type = "application/json";
  out.shared = std::move(text);
  return out;
}

Response Response::text(std::string text, int status) {
  Response out;
  out.status = status;
  out.content_type = "text/plain; charset=utf-8";
  out.body = std::move(text);
  return out;
}

Response Response::no_content() {
  Response out;
  out.status = 204;
  return out;
}

Response Response::sse(std::unique_ptr<StreamSource> source) {
  Response out = streamed("text/event-stream", std::move(source));
  out.heartbeat = true;
  return out;
}

Response Response::streamed(std::string content_type, std::unique_ptr<StreamSource> source) {
  Response out;
  out.content_type = std::move(content_type);
  out.stream = std::move(source);
  return out;
}

std::string sse_event(std::string_view id, std::string_view event, std::string_view data) {
  std::string out;
  if (!id.empty()) out += "id: " + one_line(id) + "\n";
  if (!event.empty()) out += "event: " + one_line(event) + "\n";
  size_t start = 0;
  while (true) {
    const size_t end = data.find_first_of("\r\n", start);
    out += "data: ";
    out += data.substr(start, end == std::string_view::npos ? end : end - start);
    out += '\n';
    if (end == std::string_view::npos) break;
    start = end + (data.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  return out + "\n";
}

}  // namespace clusterctl::api
