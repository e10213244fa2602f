#include "cli/token_name.h"

#include <fmt/format.h>

#include "access/api_token.h"
#include "access/join_token.h"
#include "base/strings.h"
#include "cli/several.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

// The id of a text, or the name as it is given.
Result<std::string> token_name(const std::string& given, TokenKind kind) {
  const std::string word = trim(given), mark = lower(word.substr(0, 5));
  const bool join = mark == "cctj-";
  if (!join && mark != "ccta-") return word;
  if (join != (kind == TokenKind::kJoin))
    return fail(Code::kInvalid, "usage",
                join ? "one of these is the text of a join token"
                     : "one of these is the text of a token for the API",
                join ? "revoke it with --join" : "revoke it without --join");
  if (join) {
    if (const auto parsed = access::parse_join_token(word)) return parsed->id;
  } else if (const auto id = access::api_token_id(word)) {
    return *id;
  }
  return fail(Code::kInvalid, "usage", "one of these is the text of a token, and not all of it",
              "give the whole text, or the id: clusterctl cluster token ls [--join]");
}

}  // namespace

Result<std::vector<Json>> named_tokens(Session& session, const std::vector<std::string>& names,
                                       TokenKind kind) {
  const bool join = kind == TokenKind::kJoin;
  std::vector<std::string> words;
  for (const std::string& name : names) {
    auto word = token_name(name, kind);
    if (!word) return fail(word.error());
    words.push_back(std::move(*word));
  }
  const auto list = session.get_all(join ? "/v1/join-tokens" : "/v1/tokens", {}, "tokens");
  if (!list) return fail(list.error());
  return look_up_all(words, [&](const std::string& word) -> Result<Json> {
    for (const Json& token : *list) {
      if (text(token, "id") == word || (!join && text(token, "name") == word)) return token;
    }
    return fail(Code::kNotFound, "no_such_token",
                fmt::format("there is no {}token \"{}\"", join ? "join " : "",
                            clean(truncate_utf8(word, 80))),
                fmt::format("clusterctl cluster token ls{} lists them", join ? " --join" : ""));
  });
}

}  // namespace clusterctl::cli
