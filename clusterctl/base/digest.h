// SHA-256 of a text as lower-case hexadecimal: fingerprints, and comparing tokens. Pure, any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace clusterctl {

std::string sha256_hex(std::string_view text);

}  // namespace clusterctl
