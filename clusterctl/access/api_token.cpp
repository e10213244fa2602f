#include "access/api_token.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "base/digest.h"
#include "base/time.h"

namespace clusterctl::access {
namespace {

constexpr std::string_view kPrefix = "CCTA-1-";
constexpr std::string_view kNoEnd = "9999-12-31T23:59:59.000Z";
constexpr size_t kIdSize = 12, kSecretSize = 40;

bool all_of(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

}  // namespace

std::string api_token_text(std::string_view id, std::string_view secret) {
  return fmt::format("{}{}-{}", kPrefix, id, secret);
}

std::optional<std::string> api_token_id(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (text.size() != kIdSize + 1 + kSecretSize || text[kIdSize] != '-') return std::nullopt;
  const std::string_view id = text.substr(0, kIdSize);
  const bool good = all_of(id, "abcdefghijklmnopqrstuvwxyz0123456789") &&
                    all_of(text.substr(kIdSize + 1), "0123456789abcdef");
  if (!good) return std::nullopt;
  return std::string(id);
}

bool is_text_of(const ApiToken& token, std::string_view text) {
  const std::string digest = sha256_hex(text);
  return digest.size() == token.digest.size() &&
         CRYPTO_memcmp(digest.data(), token.digest.data(), digest.size()) == 0;
}

Json token_view(const ApiToken& t) {
  return {{"id", t.id},
          {"kind", "api"},
          {"name", t.name},
          {"read_only", t.read_only},
          {"by", t.by},
          {"created", format_time(t.created)},
          {"expires", t.expires ? Json(format_time(*t.expires)) : Json()}};
}

Json to_record(const ApiToken& t) {
  Json out = token_view(t);
  out.erase("kind");
  out["v"] = 1;
  out["digest"] = t.digest;
  return out;
}

Result<ApiToken> api_token_from_record(const Json& record) {
  ApiToken out;
  out.id = get_string(record, "id", "").value_or("");
  out.name = get_string(record, "name", "").value_or("");
  out.digest = get_string(record, "digest", "").value_or("");
  out.by = get_string(record, "by", "").value_or("");
  // A record that cannot be read must not become a token that may do more.
  const auto read_only = get_bool(record, "read_only", true);
  const auto created = parse_time(get_string(record, "created", "").value_or(""));
  const bool ends = record.contains("expires") && !record["expires"].is_null();
  const auto expires = parse_time(ends ? get_string(record, "expires", "").value_or("") : kNoEnd);
  if (!out.id.empty() && !out.digest.empty() && read_only && created && expires) {
    out.read_only = *read_only;
    out.created = *created;
    if (ends) out.expires = *expires;
    return out;
  }
  return fail(Code::kInternal, "damaged", fmt::format("the record of token {} is damaged", out.id),
              "restore the state directory from a backup");
}

}  // namespace clusterctl::access
