// Errors on the wire: application/problem+json as docs/rest.md describes it. Pure functions, any
// thread.
#pragma once

#include <string_view>

#include "api/http.h"

namespace clusterctl::api {

std::string_view status_title(int status);

// {"type", "title", "status", "detail", "code", "hint"?, "problems"?}. For a status of 500 detail
// and hint are ours, not the Error's: the caller logs the Error.
Json problem_json(const Error& error, int status);
Response problem_response(const Error& error);
// For refusals of HTTP itself, which have no Code: 408, 414, 417, 431.
Response problem_response(int status, std::string_view reason, std::string_view message);

}  // namespace clusterctl::api
