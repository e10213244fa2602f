// `cluster token … --join`: tokens by which machines announce themselves. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"

namespace clusterctl::cli {

// `expires`: "24h", or empty for the default.
Result<int> create_join_token(Session& session, const std::string& expires,
                              std::optional<int64_t> uses);
Result<int> list_join_tokens(Session& session);
Result<int> revoke_join_tokens(Session& session, const std::vector<std::string>& names);

// The line that a new machine runs.
std::string join_line(const std::string& url, const std::string& token);

}  // namespace clusterctl::cli
