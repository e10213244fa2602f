#include <algorithm>

#include "api/body.h"
#include "api/resources.h"
#include "fleet/conditions.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

Json problems_json(const std::vector<Problem>& problems) {
  Json out = Json::array();
  for (const Problem& p : problems)
    out.push_back({{"code", p.code}, {"message", p.message}, {"hint", p.hint}, {"node", p.node}});
  return out;
}

Response answer(const Controller& c, const std::vector<Problem>& warnings = {}) {
  const auto now = c.state();
  const auto drifted =
      std::count_if(now->fleet->nodes.begin(), now->fleet->nodes.end(), [](const auto& entry) {
        return fleet::has_condition(entry.second.status, fleet::condition::kDrifted);
      });
  return Response::json({{"vars", now->fleet->globals},
                         {"revision", now->globals_revision},
                         {"drifted", drifted},
                         {"warnings", problems_json(warnings)}})
      .with("ETag", etag(static_cast<int64_t>(now->globals_revision)));
}

Result<Response> change(Controller& c, const Request& r, bool merge) {
  auto body = json_body(r);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {"vars"}, "the request"); !ok) return fail(ok.error());
  if (!body->contains("vars")) {
    return fail(Code::kInvalid, "no_vars", "the request has no \"vars\"",
                R"(send {"vars": {…}}; nothing was changed)");
  }
  const auto versions = if_match(r);
  if (!versions) return fail(versions.error());
  auto warnings = c.set_globals((*body)["vars"], merge, *versions, {r.identity.name});
  if (!warnings) return fail(warnings.error());
  return answer(c, *warnings);
}

}  // namespace

void add_global_routes(Router& router, Controller& c) {
  router.get("/v1/globals", [&c](const Request&) -> Result<Response> { return answer(c); });
  router.put("/v1/globals", [&c](const Request& r) { return change(c, r, false); });
  router.patch("/v1/globals", [&c](const Request& r) { return change(c, r, true); });
}

}  // namespace clusterctl::api
