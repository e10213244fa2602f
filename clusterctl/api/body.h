// What handlers need around a JSON body and its headers. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

namespace clusterctl::api {

// The body as a JSON object. A body needs Content-Type application/json (kMediaType otherwise). No
// or blank body: kInvalid `no_body`, or {} when `blank_is_empty`.
Result<Json> json_body(const Request& request, bool blank_is_empty = false);
// For routes that take no body: anything but blank is kInvalid `unexpected_body`.
Status no_body(const Request& request);

// "\"17\"" for ETag.
std::string etag(int64_t version);
// The versions that If-Match allows: nullopt if there is no If-Match
// (or it is *), else the versions it allows; a malformed one is kInvalid.
Result<std::optional<std::vector<int64_t>>> if_match(const Request& request);
// kStale unless If-Match is absent, `*`, or names `version`.
Status check_if_match(const Request& request, int64_t version);

// Idempotency-Key, if given: 1 to 128 printable ASCII characters without space, else kInvalid.
// nullopt: none given.
Result<std::optional<std::string>> idempotency_key(const Request& request);
// Marks the answer of a request that was done before.
Response replayed(bool repeated, Response response);

}  // namespace clusterctl::api
