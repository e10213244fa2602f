// A join token as the controller keeps it: never its text, only the digest of its secret. Ended
// ones are kept for a while, so that a replay is told why. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace clusterctl::controller {

inline constexpr std::string_view kJoinTokenPrefix = "join_tokens/";

struct JoinToken {
  std::string id;
  std::string digest;  // of the secret; stored, never shown
  std::string by;      // who made it
  Time created{}, expires{};
  int64_t uses = 1;  // how many machines may join by it
  int64_t used = 0;
  std::optional<Time> revoked;
  std::string revoked_by;
  bool operator==(const JoinToken&) const = default;
};

// A new one with its text, which is shown once.
struct NewJoinToken {
  JoinToken token;
  std::string text;
};

// "active", "used", "expired" or "revoked".
std::string_view state_word(const JoinToken& token, Time now);

Json to_json(const JoinToken& token, Time now);  // as answered
Json to_record(const JoinToken& token);
Result<JoinToken> join_token_from(const Json& record);

}  // namespace clusterctl::controller
