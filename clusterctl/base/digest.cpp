#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>

namespace clusterctl {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hex(const Digest& digest) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  Digest digest;
  SHA256(bytes(text), text.size(), digest.data());
  return hex(digest);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  Digest digest;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes(text), text.size(),
       digest.data(), nullptr);
  return hex(digest);
}

}  // namespace clusterctl
