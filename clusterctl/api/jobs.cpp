#include <fmt/format.h>

#include <algorithm>

#include "api/body.h"
#include "api/resources.h"
#include "base/strings.h"
#include "job/job_json.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

Response answer(const job::Job& job, const Controller& c, int status = 200) {
  return Response::json(job::to_json(job, *c.fleet(), c.waiting_for(job)), status)
      .with("ETag", etag(static_cast<int64_t>(job.resource_version)));
}

Status known(const std::string& word, const std::vector<std::string>& words,
             std::string_view what) {
  if (word.empty() || std::find(words.begin(), words.end(), word) != words.end()) return {};
  return fail(Code::kInvalid, fmt::format("bad_{}", what),
              fmt::format("jobs have no {} \"{}\"", what, one_line(word)),
              "known: " + join(words, ", "));
}

Result<Response> list(const Controller& c, const Request& request) {
  const auto limit = request.query_int("limit", 100, 1, 1000);
  if (!limit) return fail(limit.error());
  const std::string state = request.query_string("state"), kind = request.query_string("kind");
  const std::string node_ref = request.query_string("node");
  if (auto ok = known(state, job::state_words(), "state"); !ok) return fail(ok.error());
  if (auto ok = known(kind, plan::kKinds, "kind"); !ok) return fail(ok.error());
  const auto now = c.state();
  std::string node_id;
  if (!node_ref.empty()) {
    const auto node = now->fleet->find(node_ref);
    if (!node) return fail(node.error());
    node_id = (*node)->id;
  }
  Json out{{"jobs", Json::array()}};
  for (auto it = now->jobs.rbegin();
       it != now->jobs.rend() && out["jobs"].size() < static_cast<size_t>(*limit); ++it) {
    const job::Job& job = *it->second;
    if (!state.empty() && to_word(job.state) != state) continue;
    if (!kind.empty() && job.kind != kind) continue;
    if (!node_id.empty() && !job.outcome(node_id)) continue;
    out["jobs"].push_back(job::to_json(job, *now->fleet, c.waiting_for(job)));
  }
  return Response::json(out);
}

Result<Response> create(Controller& c, const Request& request) {
  auto body = json_body(request);
  if (!body) return fail(body.error());
  const auto key = idempotency_key(request);
  if (!key) return fail(key.error());
  auto accepted = c.create_job(*body, request.identity.name, key->value_or(""));
  if (!accepted) return fail(accepted.error());
  if (!accepted->job) return Response::json({{"plan", accepted->plan}});
  return answer(*accepted->job, c, 202).with("Location", "/v1/jobs/" + accepted->job->id);
}

Result<Response> cancel(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {"now"}, "a cancel request"); !ok) return fail(ok.error());
  const auto now = get_bool(*body, "now");
  if (!now) return fail(now.error());
  auto job = c.cancel_job(request.param("id"), *now);
  if (!job) return fail(job.error());
  return answer(*job, c, 202);
}

}  // namespace

void add_job_routes(Router& router, Controller& c) {
  router.get("/v1/jobs", [&c](const Request& r) { return list(c, r); },
             {"state", "kind", "node", "limit"});
  router.post("/v1/jobs", [&c](const Request& r) { return create(c, r); });
  router.get("/v1/jobs/{id}", [&c](const Request& r) -> Result<Response> {
    const auto job = c.find_job(r.param("id"));
    if (!job) return fail(job.error());
    return answer(**job, c);
  });
  router.post("/v1/jobs/{id}/cancel", [&c](const Request& r) { return cancel(c, r); });
  add_job_stream_routes(router, c);
  add_job_timeline_routes(router, c);
}

}  // namespace clusterctl::api
