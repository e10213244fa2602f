#include "base/error.h"

#include <array>

#include "base/strings.h"

namespace clusterctl {
namespace {

struct Row {
  Code code;
  std::string_view name;
  int http;
  int exit;
};

constexpr std::array kTable{
    Row{Code::kInvalid, "invalid", 400, kExitUsage},
    Row{Code::kUnauthenticated, "unauthenticated", 401, kExitNotAuthorised},
    Row{Code::kForbidden, "forbidden", 403, kExitNotAuthorised},
    Row{Code::kNotFound, "not_found", 404, kExitRefused},
    Row{Code::kMethodNotAllowed, "method_not_allowed", 405, kExitUsage},
    Row{Code::kConflict, "conflict", 409, kExitRefused},
    Row{Code::kStale, "stale", 412, kExitRefused},
    Row{Code::kTooLarge, "too_large", 413, kExitUsage},
    Row{Code::kMediaType, "media_type", 415, kExitUsage},
    Row{Code::kRefused, "refused", 422, kExitRefused},
    Row{Code::kTooMany, "too_many", 429, kExitRefused},
    Row{Code::kUnavailable, "unavailable", 503, kExitUnreachable},
    Row{Code::kJobFailed, "job_failed", 500, kExitJobFailed},
    Row{Code::kInternal, "internal", 500, kExitInternal},
};

const Row& row(Code code) {
  for (const Row& r : kTable) {
    if (r.code == code) return r;
  }
  return kTable.back();
}

}  // namespace

std::string Error::line() const {
  std::string out = message;
  if (!hint.empty()) out += " (" + hint + ")";
  return one_line(out);
}

tl::unexpected<Error> fail(Code code, std::string reason, std::string message, std::string hint) {
  return tl::unexpected<Error>(
      Error{code, std::move(reason), std::move(message), std::move(hint), {}});
}

tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

std::string_view code_name(Code code) {
  return row(code).name;
}
int http_status(Code code) {
  return row(code).http;
}
int exit_code(Code code) {
  return row(code).exit;
}

Code code_from_http(int status) {
  for (const Row& r : kTable) {
    if (r.http == status && r.code != Code::kJobFailed) return r.code;
  }
  if (status == 410) return Code::kNotFound;  // it was there, and is kept no longer
  if (status == 502 || status == 504)
    return Code::kUnavailable;  // something between us and the daemon
  return status >= 500 ? Code::kInternal : Code::kInvalid;
}

}  // namespace clusterctl
