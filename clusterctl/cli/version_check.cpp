#include "cli/version_check.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

// Reasons that a daemon of the same version never has for a request of this program. The last two
// are of servers that send no problem document.
const std::vector<std::string> kForeign{"no_route",          "unknown_key", "method_not_allowed",
                                        "bad_answer",        "not_found",   "invalid",
                                        "unknown_parameter", "bad_json"};

}  // namespace

void explain_version(client::RestClient& rest, const std::string& version, Error& error) {
  if (!contains(kForeign, error.reason)) return;
  const auto answer = rest.send({"GET", "/v1/version", {}, std::nullopt, {}});
  const std::string theirs = answer ? text(answer->json, "version") : "";
  std::string more;
  if (error.reason == "bad_answer" && theirs.empty()) return;  // it says so already
  if (answer && theirs.empty()) {
    more = rest.server() + " is no clusterctl daemon";
  } else if (!answer) {
    if (answer.error().code != Code::kUnavailable)
      more = fmt::format("is {} a clusterctl daemon?", rest.server());
  } else if (theirs != version || number(field(answer->json, "api")) != kApi) {
    more = fmt::format("this program is {} (API {}), the daemon {} (API {}): use the same version",
                       version, kApi, theirs, text(answer->json, "api"));
  }
  if (more.empty() || error.hint.find(more) != std::string::npos) return;
  error.hint += (error.hint.empty() ? "" : "; ") + more;
}

}  // namespace clusterctl::cli
