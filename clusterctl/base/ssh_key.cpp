#include "base/ssh_key.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/digest.h"
#include "base/strings.h"

namespace clusterctl {
namespace {

constexpr std::array<std::string_view, 7> kKeyTypes{"ssh-ed25519",
                                                    "ssh-rsa",
                                                    "ecdsa-sha2-nistp256",
                                                    "ecdsa-sha2-nistp384",
                                                    "ecdsa-sha2-nistp521",
                                                    "sk-ssh-ed25519@openssh.com",
                                                    "sk-ecdsa-sha2-nistp256@openssh.com"};

std::string bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}

}  // namespace

std::optional<std::string> plain_ssh_key(std::string_view line) {
  const auto parts = split(trim(line), ' ', true);
  if (parts.size() < 2 || parts[1].size() < 16) return std::nullopt;
  if (std::find(kKeyTypes.begin(), kKeyTypes.end(), parts[0]) == kKeyTypes.end())
    return std::nullopt;
  const auto bytes = base64_decode(parts[1]);
  const std::string begin =
      std::string("\0\0\0", 3) + static_cast<char>(parts[0].size()) + parts[0];
  if (!bytes || !bytes->starts_with(begin)) return std::nullopt;
  return parts[0] + " " + parts[1];
}

std::string ssh_fingerprint(std::string_view key) {
  const auto plain = plain_ssh_key(key);
  if (!plain) return "";
  const auto bytes = base64_decode(plain->substr(plain->find(' ') + 1));
  return "SHA256:" + base64_encode(bytes_of_hex(sha256_hex(*bytes)));
}

}  // namespace clusterctl
