// JSON at the edges: strict parsing of what others wrote, and readers that answer with an Error
// instead of an exception. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace clusterctl {

using Json = nlohmann::json;

// Parses a whole text: no trailing text, no duplicate keys, valid UTF-8, at most `max_depth`
// levels. `what` names the text in errors.
Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth = 32);
// The same, and it must be an object. Blank text is `{}` when `blank_is_empty`.
Result<Json> parse_json_object(std::string_view text, std::string_view what,
                               bool blank_is_empty = false);

// Never throws: invalid UTF-8 is replaced.
std::string dump_json(const Json& value, int indent = -1);
// A text as it is, anything else as JSON: what somebody meant who wrote it with or without quotes.
std::string plain_text(const Json& value);

// Field readers; absent or null gives the default, a wrong type is an Error naming the field.
Result<std::string> get_string(const Json& object, std::string_view key,
                               std::string_view fallback = "");
Result<bool> get_bool(const Json& object, std::string_view key, bool fallback = false);
Result<int64_t> get_int(const Json& object, std::string_view key, int64_t fallback = 0);
Result<std::vector<std::string>> get_strings(const Json& object, std::string_view key);
Result<Json> get_object(const Json& object, std::string_view key);

// Every key of `object` must be in `known`, else an Error naming the key, and the nearest known one
// in the hint.
Status check_keys(const Json& object, const std::vector<std::string>& known, std::string_view what);

}  // namespace clusterctl
