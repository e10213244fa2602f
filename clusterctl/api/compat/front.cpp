#include <algorithm>
#include <array>

#include "api/compat/compat.h"
#include "base/base64.h"
#include "base/strings.h"

namespace clusterctl::api::compat {
namespace {

constexpr std::array<std::string_view, 8> kFirstSegments{
    "commission", "decommission", "update", "discover", "globals", "config", "monitor", "info"};
constexpr std::string_view kProblem = "application/problem+json";
constexpr size_t kMaxProblems = 5;

bool is_here(const Peer& peer) {
  return peer.transport == Transport::kUnix || peer.address.starts_with("127.") ||
         peer.address.starts_with("[::1]:") || peer.address.starts_with("[::ffff:127.");
}

// The password of Basic authentication becomes the bearer token; what is no such header stays.
void take_password(Request& request) {
  constexpr std::string_view kScheme = "basic ";
  Headers headers;
  for (const auto& [name, value] : request.headers.fields()) {
    std::string given = value;
    if (lower(name) == "authorization" && lower(given.substr(0, kScheme.size())) == kScheme) {
      const std::string pair = base64_decode(trim(given.substr(kScheme.size()))).value_or("");
      const size_t colon = pair.find(':');
      if (colon != std::string::npos) given = "Bearer " + pair.substr(colon + 1);
    }
    headers.add(name, std::move(given));
  }
  request.headers = std::move(headers);
}

std::string text_of(const Json& problem, int status) {
  // That it has expired is told to who has it, and to nobody else.
  const bool expired = get_string(problem, "code").value_or("") == "token_expired";
  if (status == 401 && !expired)
    return "this needs the daemon's token: write it into the address, http://token:TOKEN@HOST:PORT";
  std::string out = get_string(problem, "detail").value_or("");
  const auto more = problem.find("problems");
  if (more != problem.end() && more->is_array() && more->size() > 1) {
    std::vector<std::string> all;
    for (const Json& p : *more) {
      if (all.size() < kMaxProblems) all.push_back(get_string(p, "message").value_or(""));
    }
    out = join(all, "; ");
    if (more->size() > kMaxProblems) out += "; and more";
  }
  const std::string hint = get_string(problem, "hint").value_or("");
  return hint.empty() ? out : out + " (" + hint + ")";
}

void make_plain(Response& response) {
  if (response.content_type != kProblem) return;
  const auto problem = parse_json(response.body, "a problem document");
  const std::string line = problem ? text_of(*problem, response.status) : response.body;
  response.content_type = "text/plain; charset=utf-8";
  response.body = one_line(line) + "\n";
}

}  // namespace

bool owns(std::string_view target) {
  if (target.empty() || target.front() != '/') return false;
  target.remove_prefix(1);
  const std::string_view first = target.substr(0, target.find_first_of("/?"));
  return std::find(kFirstSegments.begin(), kFirstSegments.end(), first) != kFirstSegments.end();
}

Response through(Request& request, const std::function<Response(Request&)>& next) {
  if (!owns(request.target)) return next(request);
  if (!is_here(request.peer))
    return Response::text("this route is for this machine only: use /v1 from elsewhere\n", 403);
  take_password(request);
  Response response = next(request);
  make_plain(response);
  return response;
}

}  // namespace clusterctl::api::compat
