// Named tokens for the API: what is stored of them, and their text. The text is shown once, when a
// token is made; stored is only its digest. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace clusterctl::access {

struct ApiToken {
  std::string id;  // part of the text, by which the token is found
  std::string name;
  std::string digest;  // SHA-256 of the text, hexadecimal
  std::string by;      // who made it
  Time created{};
  std::optional<Time> expires;
  bool read_only = false;  // GET and HEAD only
};

// "CCTA-1-<id>-<secret>": 12 characters of base32 and 40 hexadecimal digits.
std::string api_token_text(std::string_view id, std::string_view secret);
// The id in such a text; nullopt: this is no such text.
std::optional<std::string> api_token_id(std::string_view text);
// In a time that tells nothing of the digest.
bool is_text_of(const ApiToken& token, std::string_view text);

// As stored, and back. What is shown has no digest.
Json to_record(const ApiToken& token);
Result<ApiToken> api_token_from_record(const Json& record);
Json token_view(const ApiToken& token);

}  // namespace clusterctl::access
