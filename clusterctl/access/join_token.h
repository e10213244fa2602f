// The text of a join token: what an operator hands to a machine so that it may announce itself.
// Three parts behind a mark and a format: the fingerprint of the controller's certificate authority
// (so that the machine knows whom it talks to), the token's id, and its secret.
//
//   CCTJ-1-<64 hex>-<8 base32>-<26 base32>
//
// Daemon and command line read the same text. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace clusterctl::access {

struct JoinTokenText {
  std::string ca;  // lower-case hexadecimal SHA-256 of the authority's certificate
  std::string id;
  std::string secret;
  bool operator==(const JoinTokenText&) const = default;
};

inline constexpr size_t kJoinTokenIdSize = 8;
inline constexpr size_t kJoinTokenSecretSize = 26;
// Of a controller that has no certificate authority.
std::string no_authority();

std::string format(const JoinTokenText& token);
// kInvalid "bad_join_token" when it is none; the message never repeats the text.
Result<JoinTokenText> parse_join_token(std::string_view text);

// What is stored of a secret.
std::string digest(std::string_view secret);
// Compares two digests in a time that tells nothing of what they hold.
bool same_digest(std::string_view a, std::string_view b);

}  // namespace clusterctl::access
