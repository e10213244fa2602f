#include <fmt/format.h>

#include <memory>

#include "api/resources.h"
#include "controller/log_keeper.h"
#include "job/timeline.h"

namespace clusterctl::api {

Status check_log_is_kept(const controller::Controller& c, const job::Job& job) {
  if (!controller::log_expired(c, job)) return {};
  return fail(Code::kGone, "log_expired",
              fmt::format("the log of job {} is no longer kept", job.id),
              "logs.keep_jobs, logs.keep_days and logs.max_bytes of the daemon say how long it is");
}

void add_job_timeline_routes(Router& router, controller::Controller& c) {
  auto timelines = std::make_shared<job::Timelines>(
      [&c](const std::string& run) { return c.run_dir(run); }, c.clock());
  router.get("/v1/jobs/{id}/timeline", [&c, timelines](const Request& r) -> Result<Response> {
    const auto job = c.find_job(r.param("id"));
    if (!job) return fail(job.error());
    if (auto ok = check_log_is_kept(c, **job); !ok) return fail(ok.error());
    return Response::json(timelines->of(**job));
  });
}

}  // namespace clusterctl::api
