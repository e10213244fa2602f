#include <fmt/format.h>

#include <memory>

#include "api/problem.h"
#include "api/resources.h"
#include "controller/log_keeper.h"
#include "job/timeline.h"

namespace clusterctl::api {

std::optional<Response> log_expired(const controller::Controller& c, const std::string& ref) {
  const auto job = c.find_job(ref);
  if (!job || !controller::log_expired(c, **job)) return std::nullopt;
  const Error error{
      Code::kNotFound,
      "log_expired",
      fmt::format("the log of job {} is no longer kept", (*job)->id),
      "logs.keep_jobs, logs.keep_days and logs.max_bytes of the daemon say how long it is",
      {}};
  Response response = problem_response(error);
  response.status = 410;
  response.body = dump_json(problem_json(error, response.status)) + "\n";
  return response;
}

void add_job_timeline_routes(Router& router, controller::Controller& c) {
  auto timelines = std::make_shared<job::Timelines>(
      [&c](const std::string& run) { return c.run_dir(run); }, c.clock());
  router.get("/v1/jobs/{id}/timeline", [&c, timelines](const Request& r) -> Result<Response> {
    const auto job = c.find_job(r.param("id"));
    if (!job) return fail(job.error());
    if (auto gone = log_expired(c, r.param("id"))) return std::move(*gone);
    return Response::json(timelines->of(**job));
  });
}

}  // namespace clusterctl::api
