// `cluster token create|ls|revoke`: who may use the API over TCP; with --join: which machines may
// announce themselves.
#include <fmt/format.h>

#include "cli/cluster_commands.h"
#include "cli/join_token.h"
#include "cli/session.h"
#include "cli/several.h"
#include "cli/text.h"
#include "cli/token_name.h"
#include "client/rest_client.h"

namespace clusterctl::cli {
namespace {

class ClusterToken final : public Command {
 public:
  ClusterToken() : Command("token", "Tokens for the API: make, list, revoke") {
    aliases = {"tokens"};
    details =
        "create: a token with a name, for a person or a program that comes over TCP. Its text is "
        "shown this once; the\n"
        "daemon keeps only a digest. Jobs, history and log say the name. --read-only: may look, "
        "not change.\n"
        "revoke: nobody gets in with it from now on; what was begun goes on. Of a token that was "
        "found somewhere its\n"
        "text does as well; the secret in it is not sent.\n"
        "--join: tokens by which new machines announce themselves (clusterctl cluster join); they "
        "are good for nothing else.\n"
        "Examples: clusterctl cluster token create --name ci --expires 30d\n"
        "          clusterctl cluster token create --join --uses 20 --expires 2h\n"
        "          clusterctl cluster token create --name dashboard --read-only -q > token\n"
        "          clusterctl cluster token revoke ci";
  }

  void options(Options& o) override {
    o.argument("ACTION", action_, "create, ls or revoke").choices = {"create", "ls", "revoke"};
    o.arguments("NAMES", names_, "revoke: names, ids or texts of the tokens");
    o.value("--name", "NAME", name_, "create: who or what will use it");
    o.value("--expires", "TIME", expires_,
            "create: how long it is good for, or until when: 12h, 30d, 2027-01-31T00:00:00Z; "
            "default: until it is revoked; --join: how long, default 24h");
    o.flag("--read-only", read_only_, "create: only for looking");
    o.flag("--join", join_, "tokens by which machines join, instead of tokens for the API");
    o.number("--uses", "N", uses_, "create --join: how many machines may join by it; default 1");
  }

  Result<int> run(Session& session) override {
    if (join_) return run_join(session);
    if (uses_) return usage("--uses belongs to create --join");
    if (action_ == "create") return create(session);
    if (!name_.empty() || !expires_.empty() || read_only_) {
      return usage(fmt::format("--name, --expires and --read-only do not belong to {}", action_));
    }
    return action_ == "ls" ? list(session) : revoke(session);
  }

 private:
  Result<int> run_join(Session& session) {
    const bool create = action_ == "create";
    if (!name_.empty() || read_only_ || (!create && (!expires_.empty() || uses_)))
      return usage(
          "--name and --read-only do not belong to --join, --expires and --uses to create");
    if (names_.empty() == (action_ == "revoke"))
      return usage(names_.empty() ? "give the ids of the tokens to revoke"
                                  : fmt::format("{} --join takes no names", action_));
    if (create) return create_join_token(session, expires_, uses_);
    return action_ == "ls" ? list_join_tokens(session) : revoke_join_tokens(session, names_);
  }

  static tl::unexpected<Error> usage(std::string message) {
    return fail(Code::kInvalid, "usage", std::move(message), "clusterctl cluster token --help");
  }

  Result<int> create(Session& session) {
    if (!names_.empty()) return usage("a new token gets its name with --name");
    if (name_.empty()) return usage("name the token: --name NAME");
    Json body{{"name", name_}};
    if (!expires_.empty()) body["expires"] = expires_;
    if (read_only_) body["read_only"] = true;
    auto made = session.call("POST", "/v1/tokens", std::move(body));
    if (!made) return fail(made.error());
    if (const auto token = session.needed(*made, "token"); !token) return fail(token.error());
    if (session.structured()) {
      session.data(*made);
    } else if (session.names_only()) {
      session.line(text(*made, "token"));
    } else {
      session.line(text(*made, "token"));
      session.note("this is the only time it is shown; keep it in a file of mode 0600");
      session.next("clusterctl --server https://HOST:PORT --token-file FILE --ca-fingerprint " +
                   fingerprint(session) + " node ls");
    }
    return kExitOk;
  }

  static std::string fingerprint(Session& session) {
    const auto version = session.get("/v1/version");
    return version ? text(*version, "ca_fingerprint") : "";
  }

  Result<int> list(Session& session) {
    if (!names_.empty()) return usage("ls lists all tokens");
    auto answer = session.get("/v1/tokens");
    if (!answer) return fail(answer.error());
    if (session.structured()) {
      session.data(*answer);
      return kExitOk;
    }
    Table table({"ID", "NAME", "KIND", "ACCESS", "EXPIRES", "CREATED", "BY"});
    for (const Json& t : field(*answer, "tokens")) {
      if (session.names_only()) {
        session.line(text(t, "name"));
        continue;
      }
      table.add({text(t, "id"), text(t, "name"), text(t, "kind"),
                 field(t, "read_only") == true ? "read" : "all",
                 field(t, "expires").is_null() ? "never" : short_time(field(t, "expires")),
                 short_time(field(t, "created")), text(t, "by")});
    }
    if (!session.names_only()) session.terminal.out(session.rendered(table));
    return kExitOk;
  }

  Result<int> revoke(Session& session) {
    if (names_.empty()) return usage("name the tokens to revoke");
    const auto tokens = named_tokens(session, names_, TokenKind::kApi);
    if (!tokens) return fail(tokens.error());
    Several several(session);
    for (const Json& token : *tokens) {
      const std::string name = text(token, "name");
      const auto done =
          session.call("DELETE", "/v1/tokens/" + client::escape(text(token, "id")), nullptr);
      if (!done) {
        several.refused(done.error());
        continue;
      }
      several.did(name);
      if (!session.quiet && !session.structured()) session.line(name + " is revoked");
    }
    return several.end();
  }

  std::string action_, name_, expires_;
  std::vector<std::string> names_;
  std::optional<int64_t> uses_;
  bool read_only_ = false, join_ = false;
};

}  // namespace

CommandPtr make_cluster_token() {
  return std::make_unique<ClusterToken>();
}

}  // namespace clusterctl::cli
