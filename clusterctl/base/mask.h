// Tokens must not come into logs and messages by what somebody typed in the wrong place. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace clusterctl {

// The text with every token of ours ("CCTA-…", "CCTJ-…", whole or in part) cut behind its mark.
std::string mask_tokens(std::string_view text);
// The path of a URL as it may be shown: unescaped, because a token can be escaped, and with long
// runs of hexadecimal digits masked as well, which the daemon's own token is.
std::string mask_path(std::string_view path);

}  // namespace clusterctl
