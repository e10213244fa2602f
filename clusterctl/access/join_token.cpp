#include "access/join_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/strings.h"

namespace clusterctl::access {
namespace {

constexpr std::string_view kMark = "CCTJ";
constexpr std::string_view kFormat = "1";
constexpr size_t kFingerprint = 64;
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";

bool made_of(std::string_view text, size_t size, std::string_view alphabet) {
  return text.size() == size && text.find_first_not_of(alphabet) == std::string_view::npos;
}

}  // namespace

std::string no_authority() {
  return std::string(kFingerprint, '0');
}

std::string format(const JoinTokenText& token) {
  return fmt::format("{}-{}-{}-{}-{}", kMark, kFormat, token.ca, token.id, token.secret);
}

Result<JoinTokenText> parse_join_token(std::string_view text) {
  const auto bad = [](std::string_view why) {
    return fail(Code::kInvalid, "bad_join_token", fmt::format("this is no join token: {}", why),
                "clusterctl cluster token create --join on the controller makes one");
  };
  const auto parts = split(trim(text), '-');
  if (parts.size() != 5 || parts[0] != kMark) return bad("it must be CCTJ-1-… as it was shown");
  if (parts[1] != kFormat) return bad("it has a format that this version does not know");
  if (!made_of(parts[2], kFingerprint, kHex) || !made_of(parts[3], kJoinTokenIdSize, kBase32) ||
      !made_of(parts[4], kJoinTokenSecretSize, kBase32))
    return bad("something of it is missing or was changed");
  return JoinTokenText{parts[2], parts[3], parts[4]};
}

std::string digest(std::string_view secret) {
  return sha256_hex(secret);
}

bool same_digest(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0 && !a.empty();
}

}  // namespace clusterctl::access
