#include <fmt/format.h>

#include <algorithm>

#include "api/body.h"
#include "api/paging.h"
#include "api/resources.h"
#include "base/strings.h"
#include "job/job_json.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

std::optional<job::Conflict> waiting_of(const job::Job& job,
                                        const std::map<std::string, job::Conflict>& waiting) {
  const auto it = waiting.find(job.id);
  return it == waiting.end() ? std::nullopt : std::optional(it->second);
}

Response answer(const job::Job& job, const Controller& c, int status = 200) {
  const auto now = c.state();
  return Response::json(job::to_json(job, *now->fleet, waiting_of(job, c.waiting(*now))), status)
      .with("ETag", etag(static_cast<int64_t>(job.resource_version)));
}

// Of a request that makes a job.
Response accepted_answer(const controller::Accepted& accepted, const Controller& c) {
  return replayed(accepted.repeated,
                  answer(*accepted.job, c, 202).with("Location", "/v1/jobs/" + accepted.job->id));
}

Status known(const std::string& word, const std::vector<std::string>& words,
             std::string_view what) {
  if (word.empty() || std::find(words.begin(), words.end(), word) != words.end()) return {};
  return fail(Code::kInvalid, fmt::format("bad_{}", what),
              fmt::format("jobs have no {} \"{}\"", what, one_line(word)),
              "known: " + join(words, ", "));
}

Result<Response> list(const Controller& c, const Request& request) {
  const auto page = read_page_by_id(request, 100, 1000);
  if (!page) return fail(page.error());
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
  const auto waiting = c.waiting(*now);
  Json out{{"jobs", Json::array()}};
  auto it = page->after.empty() ? now->jobs.rbegin()
                                : std::make_reverse_iterator(now->jobs.lower_bound(page->after));
  for (; it != now->jobs.rend(); ++it) {
    const job::Job& job = *it->second;
    if (!state.empty() && to_word(job.state) != state) continue;
    if (!kind.empty() && job.kind != kind) continue;
    if (!node_id.empty() && !job.outcome(node_id)) continue;
    if (out["jobs"].size() == page->limit) {
      out["next"] = out["jobs"].back()["id"];
      break;
    }
    out["jobs"].push_back(job::to_json(job, *now->fleet, waiting_of(job, waiting)));
  }
  return Response::json(out);
}

Result<Response> create_job(Controller& c, const Request& request) {
  auto body = json_body(request);
  if (!body) return fail(body.error());
  const auto key = idempotency_key(request);
  if (!key) return fail(key.error());
  const auto versions = if_match(request);
  if (!versions) return fail(versions.error());
  auto accepted = c.create_job(*body, request.identity.name, key->value_or(""), *versions);
  if (!accepted) return fail(accepted.error());
  if (!accepted->job) return Response::json({{"plan", accepted->plan}});
  return accepted_answer(*accepted, c);
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

Result<Response> pause(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {}, "a pause request"); !ok) return fail(ok.error());
  auto job = c.pause_job(request.param("id"));
  if (!job) return fail(job.error());
  return answer(*job, c, 202);
}

Result<Response> continued(Controller& c, const Request& request, const Json& body,
                           const job::Selection& what) {
  const auto dry_run = get_bool(body, "dry_run");
  if (!dry_run) return fail(dry_run.error());
  const auto key = idempotency_key(request);
  if (!key) return fail(key.error());
  auto accepted =
      c.continue_job(request.param("id"), what, *dry_run, request.identity.name, key->value_or(""));
  if (!accepted) return fail(accepted.error());
  if (!accepted->job) return Response::json({{"plan", accepted->plan}, {"nodes", accepted->nodes}});
  return accepted_answer(*accepted, c);
}

// A pause is taken back; of a job that ended badly a new one goes on.
Result<Response> resume(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {"dry_run"}, "a resume request"); !ok) return fail(ok.error());
  const auto found = c.find_job(request.param("id"));
  if (!found) return fail(found.error());
  job::Selection what;
  what.resume = true;
  if (is_final((*found)->state)) return continued(c, request, *body, what);
  auto job = c.resume_job((*found)->id);
  if (!job) return fail(job.error());
  return answer(*job, c, 202);
}

Result<Response> retry(Controller& c, const Request& request) {
  auto body = json_body(request, true);
  if (!body) return fail(body.error());
  if (auto ok = check_keys(*body, {"failed", "untouched", "dry_run"}, "a retry request"); !ok)
    return fail(ok.error());
  const auto failed = get_bool(*body, "failed"), untouched = get_bool(*body, "untouched");
  if (!failed) return fail(failed.error());
  if (!untouched) return fail(untouched.error());
  job::Selection what;
  what.failed = *failed || !*untouched;
  what.untouched = *untouched;
  return continued(c, request, *body, what);
}

}  // namespace

void add_job_routes(Router& router, Controller& c) {
  router.get(
      "/v1/jobs", [&c](const Request& r) { return list(c, r); }, paged({"state", "kind", "node"}));
  router.post_once("/v1/jobs", [&c](const Request& r) { return create_job(c, r); });
  router.get("/v1/jobs/{id}", [&c](const Request& r) -> Result<Response> {
    const auto job = c.find_job(r.param("id"));
    if (!job) return fail(job.error());
    return answer(**job, c);
  });
  router.post("/v1/jobs/{id}/cancel", [&c](const Request& r) { return cancel(c, r); });
  router.post("/v1/jobs/{id}/pause", [&c](const Request& r) { return pause(c, r); });
  router.post_once("/v1/jobs/{id}/resume", [&c](const Request& r) { return resume(c, r); });
  router.post_once("/v1/jobs/{id}/retry", [&c](const Request& r) { return retry(c, r); });
  add_job_stream_routes(router, c);
  add_job_timeline_routes(router, c);
}

}  // namespace clusterctl::api
