// Named tokens for the API. Who holds one that may write is root on every node, so all changes are
// events.
#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/mask.h"
#include "base/time.h"
#include "controller/controller.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kMaxTokens = 1000;
constexpr size_t kSecretBytes = 20;

// A time, or how long from now on.
Result<std::optional<Time>> read_end(const Json& body, Time now) {
  auto text = get_string(body, "expires");
  if (!text) return fail(text.error());
  if (text->empty()) return std::optional<Time>();
  const bool is_time = text->find('T') != std::string::npos || text->find('-') != std::string::npos;
  if (!is_time) {
    auto life = parse_duration(*text);
    if (!life) return fail(life.error());
    return std::optional<Time>(now + *life);
  }
  auto end = parse_time(*text);
  if (!end) return fail(end.error());
  if (*end <= now) {
    return fail(Code::kInvalid, "bad_time", fmt::format("\"{}\" is in the past", *text),
                "\"expires\" is a time to come, or a duration: 12h, 30d");
  }
  return std::optional<Time>(*end);
}

}  // namespace

Result<Controller::NewToken> Controller::create_token(const Json& body, const std::string& by) {
  fleet::Problems problems;
  problems.take(check_keys(body, {"name", "expires", "read_only"}, "a token"));
  NewToken out;
  out.token.created = deps_.clock.now();
  out.token.by = by;
  out.token.name = problems.take(get_string(body, "name"));
  problems.take(fleet::check_word(out.token.name, "name of a token"));
  out.token.read_only = problems.take(get_bool(body, "read_only"));
  out.token.expires = problems.take(read_end(body, out.token.created));
  if (!problems.empty()) return problems.refuse("no token is made");
  out.token.id = deps_.ids.node_id();
  out.text = access::api_token_text(out.token.id, random_hex(kSecretBytes));
  out.token.digest = sha256_hex(out.text);

  MutexLock lock(mutex_);
  const auto now = state();
  const auto taken = std::find_if(now->tokens.begin(), now->tokens.end(), [&](const auto& entry) {
    return entry.second.name == out.token.name;
  });
  if (taken != now->tokens.end()) {
    return fail(Code::kConflict, "name_taken",
                fmt::format("there is a token {} already", out.token.name),
                fmt::format("revoke it first: clusterctl cluster token revoke {}", out.token.name));
  }
  if (now->tokens.size() >= kMaxTokens) {
    return fail(Code::kConflict, "too_many_tokens",
                fmt::format("there are {} tokens", now->tokens.size()), "revoke some first");
  }
  Change change;
  change.tokens[out.token.id] = out.token;
  change.by = by;
  change.events.push_back(
      {0, {}, "token.created", "", "", fmt::format("{} by {}", out.token.name, by)});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return out;
}

Status Controller::revoke_token(std::string_view ref, const std::string& by) {
  MutexLock lock(mutex_);
  const auto now = state();
  const auto found = std::find_if(now->tokens.begin(), now->tokens.end(), [&](const auto& entry) {
    return entry.first == ref || entry.second.name == ref;
  });
  if (found == now->tokens.end()) {
    return fail(Code::kNotFound, "no_such_token",
                fmt::format("there is no token {}", fleet::shown(mask_tokens(ref))),
                "clusterctl cluster token ls lists them");
  }
  Change change;
  change.tokens[found->first] = std::nullopt;
  change.by = by;
  change.events.push_back(
      {0, {}, "token.revoked", "", "", fmt::format("{} by {}", found->second.name, by)});
  return commit(std::move(change));
}

}  // namespace clusterctl::controller
