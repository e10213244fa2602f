// Making, listing, revoking and checking join tokens.
#include "controller/join_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "access/join_token.h"
#include "base/mask.h"
#include "base/strings.h"
#include "base/time.h"
#include "controller/controller.h"

namespace clusterctl::controller {
namespace {

constexpr std::chrono::hours kDefaultLife{24};
constexpr std::chrono::hours kMaxLife{24 * 30};
constexpr std::chrono::hours kKeptAfterEnd{24 * 30};
constexpr int64_t kMaxUses = 10000;
constexpr size_t kMaxActive = 100;
constexpr size_t kMaxKept = 500;

// When it stopped to let anybody in.
Time end_of(const JoinToken& token) {
  return token.revoked ? std::min(*token.revoked, token.expires) : token.expires;
}

// Those that ended long ago go when a new one is made; of too many, the oldest.
void drop_old(const std::map<std::string, JoinToken>& tokens, Time now, Change& change) {
  std::vector<const JoinToken*> ended;
  for (const auto& [id, token] : tokens) {
    if (state_word(token, now) != "active") ended.push_back(&token);
  }
  std::sort(ended.begin(), ended.end(), [](const JoinToken* a, const JoinToken* b) {
    return std::pair(end_of(*a), a->id) < std::pair(end_of(*b), b->id);
  });
  size_t kept = tokens.size();
  for (const JoinToken* token : ended) {
    if (kept < kMaxKept && now - end_of(*token) < kKeptAfterEnd) break;
    change.join_tokens[token->id] = std::nullopt;
    --kept;
  }
}

Result<std::chrono::seconds> life_of(const Json& body) {
  const auto it = body.find("expires");
  if (it == body.end() || it->is_null()) return std::chrono::seconds(kDefaultLife);
  if (!it->is_string() && !it->is_number_integer())
    return fail(Code::kInvalid, "wrong_type", "\"expires\" must be a duration: 90m, 24h, 7d");
  const auto life =
      parse_duration(it->is_string() ? it->get<std::string>() : std::to_string(it->get<int64_t>()));
  if (!life) return life;
  if (*life > kMaxLife)
    return fail(Code::kInvalid, "bad_duration", "a join token lives at most 30 days",
                "the default is 24h");
  return life;
}

}  // namespace

std::string_view state_word(const JoinToken& token, Time now) {
  if (token.revoked) return "revoked";
  if (token.used >= token.uses) return "used";
  return now >= token.expires ? "expired" : "active";
}

Json to_json(const JoinToken& t, Time now) {
  return {{"id", t.id},
          {"state", state_word(t, now)},
          {"by", t.by},
          {"created", format_time(t.created)},
          {"expires", format_time(t.expires)},
          {"uses", t.uses},
          {"used", t.used},
          {"revoked", t.revoked ? Json(format_time(*t.revoked)) : Json()},
          {"revoked_by", t.revoked_by}};
}

Json to_record(const JoinToken& t) {
  Json out = to_json(t, {});
  out.erase("state");
  out["v"] = 1;
  out["digest"] = t.digest;
  return out;
}

Result<JoinToken> join_token_from(const Json& record) {
  JoinToken t;
  t.id = get_string(record, "id").value_or("");
  t.digest = get_string(record, "digest").value_or("");
  t.by = get_string(record, "by").value_or("");
  t.revoked_by = get_string(record, "revoked_by").value_or("");
  t.uses = get_int(record, "uses").value_or(0);
  t.used = get_int(record, "used").value_or(0);
  const auto created = parse_time(get_string(record, "created").value_or(""));
  const auto expires = parse_time(get_string(record, "expires").value_or(""));
  const std::string revoked = get_string(record, "revoked").value_or("");
  const auto revoked_at = parse_time(revoked);
  if (t.id.empty() || t.digest.empty() || t.uses < 1 || !created || !expires ||
      (!revoked.empty() && !revoked_at)) {
    return fail(Code::kInternal, "damaged",
                fmt::format("the record of join token \"{}\" is damaged", one_line(t.id)),
                "restore the state directory from a backup");
  }
  t.created = *created;
  t.expires = *expires;
  if (!revoked.empty()) t.revoked = *revoked_at;
  return t;
}

Result<NewJoinToken> Controller::create_join_token(const Json& body, const By& by) {
  if (auto ok = check_keys(body, {"expires", "uses"}, "a request for a join token"); !ok)
    return fail(ok.error());
  const auto life = life_of(body);
  if (!life) return fail(life.error());
  const auto uses = get_int(body, "uses", 1);
  if (!uses) return fail(uses.error());
  if (*uses < 1 || *uses > kMaxUses)
    return fail(Code::kInvalid, "out_of_range",
                fmt::format("\"uses\" is how many machines may join by it: 1 to {}", kMaxUses));
  MutexLock lock(mutex_);
  const auto now = state();
  const Time time = deps_.clock.now();
  const auto active =
      std::count_if(now->join_tokens.begin(), now->join_tokens.end(),
                    [&](const auto& t) { return state_word(t.second, time) == "active"; });
  if (static_cast<size_t>(active) >= kMaxActive)
    return fail(Code::kConflict, "too_many_tokens",
                fmt::format("{} join tokens are active", active),
                "clusterctl cluster token revoke ID ends those that nobody needs");
  NewJoinToken made;
  JoinToken& t = made.token;
  do {
    t.id = random_base32(access::kJoinTokenIdSize);
  } while (now->join_tokens.count(t.id) != 0);
  const std::string secret = random_base32(access::kJoinTokenSecretSize);
  t.digest = access::digest(secret);
  t.by = by.who;
  t.created = time;
  t.expires = time + *life;
  t.uses = *uses;
  const std::string& ca = deps_.settings.ca_fingerprint;
  made.text = access::format({ca.empty() ? access::no_authority() : ca, t.id, secret});
  Change change;
  change.by = by.who;
  change.what = "make join token " + t.id;
  drop_old(now->join_tokens, time, change);
  change.join_tokens[t.id] = t;
  change.events.push_back({0,
                           {},
                           "cluster.updated",
                           "",
                           "",
                           fmt::format("join token {} for {} machines until {}", t.id, t.uses,
                                       format_time(t.expires))});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return made;
}

Result<JoinToken> Controller::revoke_join_token(std::string_view id, const By& by) {
  MutexLock lock(mutex_);
  const auto now = state();
  const auto it = now->join_tokens.find(std::string(id));
  if (it == now->join_tokens.end())
    return fail(
        Code::kNotFound, "no_such_token",
        fmt::format("there is no join token \"{}\"", truncate_utf8(one_line(mask_tokens(id)), 40)),
        "clusterctl cluster token ls --join lists them");
  JoinToken token = it->second;
  if (state_word(token, deps_.clock.now()) != "active") return token;
  token.revoked = deps_.clock.now();
  token.revoked_by = by.who;
  Change change;
  change.by = by.who;
  change.what = "revoke join token " + token.id;
  change.join_tokens[token.id] = token;
  change.events.push_back(
      {0, {}, "cluster.updated", "", "", fmt::format("join token {} revoked", token.id)});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return token;
}

// The token in a body that has a good one. Why an ended one does not do is told only to who has its
// secret.
Result<JoinToken> Controller::good_join_token(const Json& body) const {
  const auto refuse = [](std::string reason, std::string message) {
    return fail(Code::kUnauthenticated, std::move(reason), std::move(message),
                "ask for a new one: clusterctl cluster token create --join on the controller");
  };
  const auto given = get_string(body, "token");
  if (!given) return fail(given.error());
  const auto text = access::parse_join_token(*given);
  if (!text) return refuse(text.error().reason, text.error().message);
  const std::string& ca = deps_.settings.ca_fingerprint;
  if (text->ca != (ca.empty() ? access::no_authority() : ca))
    return refuse("other_authority", "this join token belongs to another controller");
  const auto now = state();
  const auto it = now->join_tokens.find(text->id);
  if (it == now->join_tokens.end() ||
      !access::same_digest(it->second.digest, access::digest(text->secret)))
    return refuse("wrong_join_token", "this controller does not know the join token");
  const JoinToken& token = it->second;
  const std::string_view word = state_word(token, deps_.clock.now());
  if (word == "revoked")
    return refuse("join_token_revoked", fmt::format("join token {} was revoked at {}", token.id,
                                                    format_time(*token.revoked)));
  if (word == "used")
    return refuse("join_token_used", fmt::format("join token {} is used up: {} of {} machines have "
                                                 "joined by it",
                                                 token.id, token.used, token.uses));
  if (word == "expired")
    return refuse("join_token_expired", fmt::format("join token {} has expired at {}", token.id,
                                                    format_time(token.expires)));
  return token;
}

}  // namespace clusterctl::controller
