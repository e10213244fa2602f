// Base64 as in RFC 4648 section 4. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clusterctl {

// nullopt when there is anything else than its digits, besides "=" at the end.
std::optional<std::string> base64_decode(std::string_view text);
// Without "=" at the end.
std::string base64_encode(std::string_view bytes);

}  // namespace clusterctl
