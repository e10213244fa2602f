#include "cli/work.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "cli/attach.h"
#include "cli/plan_view.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr int kTries = 5;

}  // namespace

Result<Json> ask_plan(Session& session, Json body) {
  body["dry_run"] = true;
  auto answer = session.call("POST", "/v1/jobs", std::move(body));
  if (!answer) return answer;
  return field(*answer, "plan");
}

Result<int> show_plan(Session& session, Json body) {
  auto plan = ask_plan(session, std::move(body));
  if (!plan) return fail(plan.error());
  if (session.structured()) {
    session.data(*plan);
  } else if (session.names_only()) {
    for (const std::string& node : plan_nodes(*plan)) session.line(node);
  } else {
    session.terminal.out(plan_text(*plan));
    session.next("nothing was done; the same without --plan does it");
  }
  return kExitOk;
}

Result<int> start_job(Session& session, const Json& body, bool detach) {
  const std::map<std::string, std::string> headers{{"Idempotency-Key", random_hex(16)}};
  auto job = session.call("POST", "/v1/jobs", body, headers);
  for (int i = 1; i < kTries && !job && job.error().reason == "connection_lost"; ++i) {
    session.timer.sleep(std::chrono::milliseconds{500});
    job = session.call("POST", "/v1/jobs", body, headers);
  }
  if (!job) return fail(job.error());
  session.warnings(*job);
  const std::string id = text(*job, "id");
  if (!detach) return attach(session, id);
  if (session.structured()) {
    session.data(*job);
  } else {
    session.line(session.names_only() ? id : fmt::format("job {}: {}", id, text(*job, "title")));
    session.next(fmt::format("clusterctl job wait {}", id));
  }
  return kExitOk;
}

}  // namespace clusterctl::cli
