// What every fallible function returns. Plain values, safe to use from any thread.
//
// A Result<T> holds a value or an Error. The Code says which kind of trouble it is; exactly one
// table (error.cpp) maps it to the HTTP status and to the exit code of the command line. `reason`
// is the stable machine-readable word of this very case
// ("needs_job", "duplicate", "quorum_lost"); it never changes once released.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace clusterctl {

enum class Code {
  kInvalid,          // the request is malformed
  kUnauthenticated,  // no or wrong credentials
  kForbidden,        // known caller, not allowed
  kNotFound,
  kMethodNotAllowed,
  kConflict,     // the state of the fleet forbids it now: lock, duplicate, transition, quorum
  kStale,        // If-Match or plan does not fit the present version
  kTooLarge,     // a limit on size was passed
  kMediaType,    // a body of the wrong type
  kRefused,      // well-formed, but the placement rules say no
  kTooMany,      // a limit on number or rate was passed
  kUnavailable,  // cannot be reached or is not ready
  kJobFailed,    // a job that was waited for did not succeed
  kInternal,     // our own fault
};

// One reason out of possibly many why a request was refused. `node` is empty when it concerns the
// request as a whole.
struct Problem {
  std::string code;
  std::string message;
  std::string hint;
  std::string node;
  bool operator==(const Problem&) const = default;
};

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  std::string reason;
  std::string message;
  std::string hint;
  std::vector<Problem> problems;

  // "message (hint)" on one line, for logs and terminals.
  std::string line() const;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

tl::unexpected<Error> fail(Code code, std::string reason, std::string message,
                           std::string hint = "");
tl::unexpected<Error> fail(Error error);

// The word of the code itself, used when an Error has no reason of its own.
std::string_view code_name(Code code);
int http_status(Code code);
Code code_from_http(int status);
int exit_code(Code code);

// Exit codes of the command line that belong to no Error.
inline constexpr int kExitOk = 0;
inline constexpr int kExitJobFailed = 1;
inline constexpr int kExitUsage = 64;
inline constexpr int kExitRefused = 65;
inline constexpr int kExitUnreachable = 69;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitOutput = 74;
inline constexpr int kExitNotAuthorised = 77;
inline constexpr int kExitDetached = 130;

}  // namespace clusterctl
