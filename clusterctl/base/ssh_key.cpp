#include "base/ssh_key.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/digest.h"
#include "base/strings.h"

namespace clusterctl {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::array<std::string_view, 7> kKeyTypes{"ssh-ed25519",
                                                    "ssh-rsa",
                                                    "ecdsa-sha2-nistp256",
                                                    "ecdsa-sha2-nistp384",
                                                    "ecdsa-sha2-nistp521",
                                                    "sk-ssh-ed25519@openssh.com",
                                                    "sk-ecdsa-sha2-nistp256@openssh.com"};

std::optional<std::string> base64_bytes(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = kBase64Digits.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

std::string base64_text(std::string_view bytes) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += kBase64Digits[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kBase64Digits[bits << (6 - count) & 63];
  return out;
}

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
  const auto bytes = base64_bytes(parts[1]);
  const std::string begin =
      std::string("\0\0\0", 3) + static_cast<char>(parts[0].size()) + parts[0];
  if (!bytes || !bytes->starts_with(begin)) return std::nullopt;
  return parts[0] + " " + parts[1];
}

std::string ssh_fingerprint(std::string_view key) {
  const auto plain = plain_ssh_key(key);
  if (!plain) return "";
  const auto bytes = base64_bytes(plain->substr(plain->find(' ') + 1));
  return "SHA256:" + base64_text(bytes_of_hex(sha256_hex(*bytes)));
}

}  // namespace clusterctl
