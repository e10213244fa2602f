#include "api/problem.h"

#include <array>

namespace clusterctl::api {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 24> kTitles{{
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
}};

Response as_response(const Json& problem, int status) {
  Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.body = dump_json(problem) + "\n";
  return response;
}

Json problem_base(int status, std::string_view detail, std::string_view code) {
  return {{"type", "about:blank"},
          {"title", status_title(status)},
          {"status", status},
          {"detail", detail},
          {"code", code}};
}

}  // namespace

std::string_view status_title(int status) {
  for (const auto& [number, title] : kTitles) {
    if (number == status) return title;
  }
  return "Unknown";
}

Json problem_json(const Error& error, int status) {
  if (status == 500) {
    Json out = problem_base(status, "the daemon failed while it handled this request", "internal");
    out["hint"] = "the daemon's log has the details";
    return out;
  }
  const std::string_view code = error.reason.empty() ? code_name(error.code) : error.reason;
  Json out = problem_base(status, error.message, code);
  if (!error.hint.empty()) out["hint"] = error.hint;
  for (const Problem& p : error.problems) {
    Json item = {{"code", p.code}, {"message", p.message}};
    if (!p.hint.empty()) item["hint"] = p.hint;
    if (!p.node.empty()) item["node"] = p.node;
    out["problems"].push_back(std::move(item));
  }
  return out;
}

Response problem_response(const Error& error) {
  const int status = http_status(error.code);
  Response response = as_response(problem_json(error, status), status);
  if (error.code == Code::kUnauthenticated) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"clusterctl\"");
  }
  if (error.code == Code::kTooMany || error.code == Code::kUnavailable) {
    response.headers.emplace_back("Retry-After", "5");
  }
  return response;
}

Response problem_response(int status, std::string_view reason, std::string_view message) {
  return as_response(problem_base(status, message, reason), status);
}

}  // namespace clusterctl::api
