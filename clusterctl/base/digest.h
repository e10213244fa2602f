// SHA-256 as lower-case hexadecimal: of a text (fingerprints, comparing tokens), and keyed
// (signatures). Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace clusterctl {

std::string sha256_hex(std::string_view text);
// HMAC-SHA256, RFC 2104.
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

}  // namespace clusterctl
