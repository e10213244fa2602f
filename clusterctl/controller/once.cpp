#include "controller/once.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "base/time.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kForgottenAtOnce = 10;  // so that a commit stays small

}  // namespace

Json to_record(const KeyRecord& record) {
  return {{"v", 1},
          {"request", record.request},
          {"made", record.made},
          {"used", record.used.time_since_epoch().count()}};
}

KeyRecord key_from_record(const Json& record) {
  return {get_string(record, "request").value_or(""), get_string(record, "made").value_or(""),
          Time{std::chrono::milliseconds(get_int(record, "used").value_or(0))}};
}

std::string request_digest(std::string_view route, const Json& body) {
  return sha256_hex(fmt::format("{}\n{}", route, dump_json(body)));
}

tl::unexpected<Error> made_is_gone(std::string_view made) {
  return fail(Code::kConflict, "idempotency_gone",
              fmt::format("this Idempotency-Key has made {}, which is no longer there", made),
              "use a new key to make another one");
}

Result<std::optional<std::string>> KeyTable::find(const std::string& key,
                                                  const std::string& request, Time now) const {
  if (key.empty()) return std::optional<std::string>();
  const auto it = keys_.find(sha256_hex(key));
  if (it == keys_.end() || now - it->second.used >= kKept) return std::optional<std::string>();
  if (it->second.request != request) {
    return fail(
        Code::kConflict, "idempotency_key",
        fmt::format("this Idempotency-Key was used at {} for another request, which made {}",
                    format_time(it->second.used), it->second.made),
        "use a new key for another request");
  }
  return std::optional(it->second.made);
}

void KeyTable::remember(const std::string& key, KeyRecord record, KeyChanges& out) const {
  if (key.empty()) return;
  const std::string mine = sha256_hex(key);
  const Time now = record.used;
  size_t left = keys_.size() + !keys_.count(mine), gone = 0;
  for (const auto& [used, other] : by_age_) {
    if (gone == kForgottenAtOnce || (now - used < kKept && left <= kMax)) break;
    if (other == mine) continue;
    out[other] = std::nullopt;
    --left;
    ++gone;
  }
  out[mine] = std::move(record);
}

void KeyTable::apply(const KeyChanges& changes) {
  for (const auto& [digest, record] : changes) {
    if (const auto old = keys_.find(digest); old != keys_.end()) {
      by_age_.erase({old->second.used, digest});
      keys_.erase(old);
    }
    if (!record) continue;
    by_age_.insert({record->used, digest});
    keys_.emplace(digest, *record);
  }
}

}  // namespace clusterctl::controller
