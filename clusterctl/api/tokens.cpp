// Named tokens: GET and POST /v1/tokens, DELETE /v1/tokens/{t}.
#include <algorithm>

#include "api/body.h"
#include "api/paging.h"
#include "api/resources.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

}  // namespace

Status may_manage_tokens(const Request& request) {
  if (!request.identity.named_token) return {};
  return fail(Code::kForbidden, "not_by_token", "a named token cannot make or revoke tokens",
              "use the Unix socket, or the token of the daemon's token file");
}

void add_token_routes(Router& router, Controller& c) {
  router.get(
      "/v1/tokens",
      [&c](const Request& r) -> Result<Response> {
        Json list = Json::array();
        const auto state = c.state();
        for (const auto& [id, token] : state->tokens) list.push_back(access::token_view(token));
        std::sort(list.begin(), list.end(),
                  [](const Json& a, const Json& b) { return a["name"] < b["name"]; });
        return page_of(r, {{"tokens", std::move(list)}}, "tokens", true);
      },
      paged());
  router.post("/v1/tokens", [&c](const Request& r) -> Result<Response> {
    if (auto ok = may_manage_tokens(r); !ok) return fail(ok.error());
    auto body = json_body(r);
    if (!body) return fail(body.error());
    auto made = c.create_token(*body, r.identity.name);
    if (!made) return fail(made.error());
    Json out = access::token_view(made->token);
    out["token"] = made->text;
    return Response::json(out, 201).with("Location", "/v1/tokens/" + made->token.id);
  });
  router.del("/v1/tokens/{t}", [&c](const Request& r) -> Result<Response> {
    if (auto ok = may_manage_tokens(r); !ok) return fail(ok.error());
    if (auto ok = no_body(r); !ok) return fail(ok.error());
    if (auto ok = c.revoke_token(r.param("t"), r.identity.name); !ok) return fail(ok.error());
    return Response::no_content();
  });
}

}  // namespace clusterctl::api
