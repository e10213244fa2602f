#include "cli/join_token.h"

#include <fmt/format.h>

#include "cli/several.h"
#include "cli/text.h"
#include "cli/token_name.h"

namespace clusterctl::cli {

std::string join_line(const std::string& url, const std::string& token) {
  return fmt::format("clusterctl cluster join {} --token {}", url, token);
}

Result<int> create_join_token(Session& session, const std::string& expires,
                              std::optional<int64_t> uses) {
  Json body = Json::object();
  if (!expires.empty()) body["expires"] = expires;
  if (uses) body["uses"] = *uses;
  const auto made = session.call("POST", "/v1/join-tokens", std::move(body));
  if (!made) return fail(made.error());
  if (const auto token = session.needed(*made, "token"); !token) return fail(token.error());
  if (session.structured()) {
    session.data(*made);
    return kExitOk;
  }
  session.line(text(*made, "token"));
  if (session.names_only()) return kExitOk;
  session.note(fmt::format("this is the only time it is shown; for {}, until {}",
                           count(static_cast<size_t>(number(field(*made, "uses"))), "machine"),
                           short_time(field(*made, "expires"))));
  session.next("on the new machine: " + join_line("https://HOST:PORT", "TOKEN"));
  return kExitOk;
}

Result<int> list_join_tokens(Session& session) {
  const auto answer = session.get("/v1/join-tokens");
  if (!answer) return fail(answer.error());
  if (session.structured()) {
    session.data(*answer);
    return kExitOk;
  }
  Table table({"ID", "STATE", "USED", "EXPIRES", "CREATED", "BY"});
  for (const Json& t : field(*answer, "tokens")) {
    if (session.names_only()) {
      session.line(text(t, "id"));
      continue;
    }
    table.add({text(t, "id"), text(t, "state"),
               fmt::format("{}/{}", text(t, "used"), text(t, "uses")),
               short_time(field(t, "expires")), short_time(field(t, "created")), text(t, "by")});
  }
  if (!session.names_only()) session.terminal.out(session.rendered(table));
  return kExitOk;
}

Result<int> revoke_join_tokens(Session& session, const std::vector<std::string>& names) {
  const auto tokens = named_tokens(session, names, TokenKind::kJoin);
  if (!tokens) return fail(tokens.error());
  Several several(session);
  for (const Json& token : *tokens) {
    const std::string id = text(token, "id");
    const auto done = session.call("DELETE", "/v1/join-tokens/" + client::escape(id), nullptr);
    if (!done) {
      several.refused(done.error());
      continue;
    }
    several.did(id);
    if (session.structured()) {
      session.data(*done);
    } else if (!session.quiet) {
      session.line(fmt::format("join token {} is {}", text(*done, "id"), text(*done, "state")));
    }
  }
  return several.end();
}

}  // namespace clusterctl::cli
