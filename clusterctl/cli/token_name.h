// How a token is named on the command line: by id or name, or by its own text, which is all that
// one has of a token that was found somewhere. The text's secret is neither sent nor shown. One
// thread.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace clusterctl::cli {

enum class TokenKind { kApi, kJoin };

// The tokens of these names, all of them looked up in the daemon's list. Refused: the text of a
// token of the other kind, and what is only a part of one.
Result<std::vector<Json>> named_tokens(Session& session, const std::vector<std::string>& names,
                                       TokenKind kind);

}  // namespace clusterctl::cli
