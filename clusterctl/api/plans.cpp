#include "api/body.h"
#include "api/resources.h"
#include "base/time.h"
#include "job/job_json.h"

namespace clusterctl::api {
namespace {

using controller::Controller;
using controller::StoredPlan;

Json view(const StoredPlan& p) {
  Json nodes = Json::array();
  for (const auto& [name, pin] : p.pins) nodes.push_back(name);
  return {{"id", p.id},
          {"title", p.title},
          {"initiator", p.initiator},
          {"created", format_time(p.created)},
          {"expires", format_time(p.created + controller::kPlanKept)},
          {"affected", nodes},
          {"applied", p.applied ? Json(format_time(*p.applied)) : Json()},
          {"jobs", p.jobs}};
}

Result<Response> create_plan(Controller& c, const Request& request) {
  auto body = json_body(request);
  if (!body) return fail(body.error());
  auto plan = c.create_plan(*body, request.identity.name);
  if (!plan) return fail(plan.error());
  if (!plan->contains("id")) return Response::json(*plan);
  return Response::json(*plan, 201)
      .with("Location", "/v1/plans/" + plan->at("id").get<std::string>());
}

Result<Response> apply(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {}, "an apply request"); !ok) return fail(ok.error());
  auto applied = c.apply_plan(request.param("id"), request.identity.name);
  if (!applied) return fail(applied.error());
  const auto now = c.state();
  const auto waiting = c.waiting(*now);
  Json jobs = Json::array();
  for (const std::string& id : applied->jobs) {
    const auto it = now->jobs.find(id);
    if (it == now->jobs.end()) continue;  // long over
    const auto w = waiting.find(id);
    jobs.push_back(job::to_json(*it->second, *now->fleet,
                                w == waiting.end() ? std::nullopt : std::optional(w->second)));
  }
  const uint64_t revision = now->revisions.empty() ? 0 : now->revisions.rbegin()->first;
  return Response::json({{"plan", applied->id}, {"jobs", std::move(jobs)}, {"revision", revision}},
                        applied->jobs.empty() ? 200 : 202);
}

Result<Response> revisions(const Controller& c, const Request& request) {
  const auto limit = request.query_int("limit", 200, 1, 1000);
  if (!limit) return fail(limit.error());
  const auto now = c.state();
  Json list = Json::array();
  for (auto it = now->revisions.rbegin();
       it != now->revisions.rend() && list.size() < static_cast<size_t>(*limit); ++it)
    list.push_back(controller::to_json(*it->second));
  const bool none = now->revisions.empty();
  return Response::json({{"revisions", std::move(list)},
                         {"current", none ? 0 : now->revisions.rbegin()->first},
                         {"oldest", none ? 0 : now->revisions.begin()->first - 1}});
}

}  // namespace

void add_plan_routes(Router& router, Controller& c) {
  router.post("/v1/plans", [&c](const Request& r) { return create_plan(c, r); });
  router.get("/v1/plans", [&c](const Request&) -> Result<Response> {
    Json out{{"plans", Json::array()}};
    const auto now = c.state();
    for (auto it = now->plans.rbegin(); it != now->plans.rend(); ++it)
      out["plans"].push_back(view(*it->second));
    return Response::json(out);
  });
  router.get("/v1/plans/{id}", [&c](const Request& r) -> Result<Response> {
    const auto plan = c.find_plan(r.param("id"));
    if (!plan) return fail(plan.error());
    return Response::json(view(**plan));
  });
  router.post("/v1/plans/{id}/apply", [&c](const Request& r) { return apply(c, r); });
  router.get("/v1/revisions", [&c](const Request& r) { return revisions(c, r); }, {"limit"});
}

}  // namespace clusterctl::api
