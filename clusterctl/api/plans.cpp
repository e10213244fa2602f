#include "api/body.h"
#include "api/paging.h"
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
  const auto key = idempotency_key(request);
  if (!key) return fail(key.error());
  controller::Once once{key->value_or("")};
  auto plan = c.create_plan(*body, request.identity.name, &once);
  if (!plan) return fail(plan.error());
  if (!plan->contains("id")) return Response::json(*plan);
  return replayed(once.repeated,
                  Response::json(*plan, 201)
                      .with("Location", "/v1/plans/" + plan->at("id").get<std::string>()));
}

Result<Response> apply(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {}, "an apply request"); !ok) return fail(ok.error());
  const auto key = idempotency_key(request);
  if (!key) return fail(key.error());
  auto applied = c.apply_plan(request.param("id"), request.identity.name, key->value_or(""));
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
  return replayed(
      applied->repeated && key->has_value(),
      Response::json({{"plan", applied->id}, {"jobs", std::move(jobs)}, {"revision", revision}},
                     applied->jobs.empty() ? 200 : 202));
}

Result<Response> revisions(const Controller& c, const Request& request) {
  const auto page = read_page(request, 200, 1000);
  if (!page) return fail(page.error());
  const auto after = number_cursor(*page);
  if (!after) return fail(after.error());
  const auto now = c.state();
  const bool none = now->revisions.empty();
  Json out{{"revisions", Json::array()},
           {"current", none ? 0 : now->revisions.rbegin()->first},
           {"oldest", none ? 0 : now->revisions.begin()->first - 1}};
  auto it = *after == 0 ? now->revisions.rbegin()
                        : std::make_reverse_iterator(now->revisions.lower_bound(*after));
  for (; it != now->revisions.rend() && out["revisions"].size() < page->limit; ++it)
    out["revisions"].push_back(controller::to_json(*it->second));
  if (it != now->revisions.rend()) out["next"] = std::to_string(std::prev(it)->first);
  return Response::json(out);
}

Result<Response> plans(const Controller& c, const Request& request) {
  const auto page = read_page_by_id(request, 100, 1000);
  if (!page) return fail(page.error());
  const auto now = c.state();
  Json out{{"plans", Json::array()}};
  auto it = page->after.empty() ? now->plans.rbegin()
                                : std::make_reverse_iterator(now->plans.lower_bound(page->after));
  for (; it != now->plans.rend() && out["plans"].size() < page->limit; ++it)
    out["plans"].push_back(view(*it->second));
  if (it != now->plans.rend()) out["next"] = std::prev(it)->first;
  return Response::json(out);
}

}  // namespace

void add_plan_routes(Router& router, Controller& c) {
  router.post_once("/v1/plans", [&c](const Request& r) { return create_plan(c, r); });
  router.get(
      "/v1/plans", [&c](const Request& r) { return plans(c, r); }, paged());
  router.get("/v1/plans/{id}", [&c](const Request& r) -> Result<Response> {
    const auto plan = c.find_plan(r.param("id"));
    if (!plan) return fail(plan.error());
    return Response::json(view(**plan));
  });
  router.post_once("/v1/plans/{id}/apply", [&c](const Request& r) { return apply(c, r); });
  router.get(
      "/v1/revisions", [&c](const Request& r) { return revisions(c, r); }, paged());
}

}  // namespace clusterctl::api
