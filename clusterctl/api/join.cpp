// Machines that join and leave, and the tokens by which they may.
#include <fmt/format.h>

#include <memory>

#include "api/body.h"
#include "api/paging.h"
#include "api/rate_limit.h"
#include "api/resources.h"
#include "fleet/words.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

constexpr size_t kMaxAnnouncement = 32 << 10;
// A machine asks twice to join. Whoever guesses has 130 bits before him.
constexpr int kBurst = 30;
constexpr std::chrono::milliseconds kInterval{1000};

// What comes from nobody in particular is bounded before it is read.
Result<Json> stranger_body(RateLimit& limit, const Request& r) {
  if (r.peer.transport == Transport::kTcp && !limit.admit(address_without_port(r.peer.address)))
    return fail(Code::kTooMany, "too_many", "too many requests from this address",
                "wait as long as Retry-After says, and try again");
  if (r.body.size() > kMaxAnnouncement)
    return fail(Code::kTooLarge, "too_large",
                fmt::format("the body is larger than {} bytes", kMaxAnnouncement));
  return json_body(r);
}

Result<Response> take_join(Controller& c, RateLimit& limit, const Request& r) {
  const auto body = stranger_body(limit, r);
  if (!body) return fail(body.error());
  const auto joined = c.join_machine(*body);
  if (!joined) return fail(joined.error());
  const fleet::Node& node = joined->node;
  const auto fleet = c.fleet();
  Json out{
      {"node", node.name},
      {"id", node.id},
      {"finding", fleet::word(joined->admission.finding)},
      {"message", joined->admission.message},
      {"acceptance", fleet::word(node.spec.acceptance)},
      {"user", node.spec.ssh.user.empty() ? c.settings().run_defaults.user : node.spec.ssh.user},
      {"public_key", c.settings().ssh_public_key},
      {"cluster", {{"id", fleet->cluster.id}, {"name", fleet->cluster.name}}},
      {"next", node.spec.acceptance == fleet::Acceptance::kAccepted
                   ? fmt::format("clusterctl node commission {} --host-group GROUP", node.name)
                   : fmt::format("clusterctl node accept {} --host-group GROUP", node.name)}};
  if (!joined->leave_secret.empty()) out["leave_secret"] = joined->leave_secret;
  return Response::json(out);
}

Result<Response> take_leave(Controller& c, RateLimit& limit, const Request& r) {
  const auto body = stranger_body(limit, r);
  if (!body) return fail(body.error());
  const auto left = c.leave_machine(*body);
  if (!left) return fail(left.error());
  return Response::json({{"left", *left}}, *left ? 200 : 202);
}

Json shown_token(const Controller& c, const controller::JoinToken& token) {
  return to_json(token, c.clock().now());
}

}  // namespace

void add_join_routes(Router& router, Controller& c) {
  const auto limit = std::make_shared<RateLimit>(kBurst, kInterval);
  router.post("/v1/join", [&c, limit](const Request& r) { return take_join(c, *limit, r); });
  router.post("/v1/join/leave", [&c, limit](const Request& r) { return take_leave(c, *limit, r); });
  router.get(
      "/v1/join-tokens",
      [&c](const Request& r) -> Result<Response> {
        Json tokens = Json::array();
        const auto now = c.state();
        for (const auto& [id, token] : now->join_tokens) tokens.push_back(shown_token(c, token));
        return page_of(r, {{"tokens", std::move(tokens)}}, "tokens", true, "id");
      },
      paged());
  router.post("/v1/join-tokens", [&c](const Request& r) -> Result<Response> {
    if (auto ok = may_manage_tokens(r); !ok) return fail(ok.error());
    auto body = json_body(r, true);
    if (!body) return fail(body.error());
    const auto made = c.create_join_token(*body, {r.identity.name});
    if (!made) return fail(made.error());
    Json out = shown_token(c, made->token);
    out["token"] = made->text;
    return Response::json(out, 201).with("Location", "/v1/join-tokens/" + made->token.id);
  });
  router.del("/v1/join-tokens/{id}", [&c](const Request& r) -> Result<Response> {
    if (auto ok = may_manage_tokens(r); !ok) return fail(ok.error());
    if (auto ok = no_body(r); !ok) return fail(ok.error());
    const auto token = c.revoke_join_token(r.param("id"), {r.identity.name});
    if (!token) return fail(token.error());
    return Response::json(shown_token(c, *token));
  });
}

}  // namespace clusterctl::api
