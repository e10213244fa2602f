// What contiv's clients ask: nodes, variables, jobs, logs.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "api/compat/routes.h"
#include "api/compat/views.h"
#include "api/job_log.h"
#include "base/strings.h"
#include "fleet/patterns.h"
#include "job/timeline.h"

namespace clusterctl::api::compat {
namespace {

using controller::Controller;
using JobPtr = std::shared_ptr<const job::Job>;

constexpr size_t kMaxLogBytes = 1 << 20;  // of "logs"; GET /info/logs has all of it

// "active": what runs, else what waits. "last": what ended last.
Result<JobPtr> find_job(const Controller& c, const std::string& label) {
  if (label != "active" && label != "last")
    return fail(Code::kInvalid, "bad_label",
                fmt::format("Invalid or empty job label: {}", fleet::shown(label)),
                "active or last");
  if (label == "active") {
    if (const auto job = c.find_job("active")) return *job;
  } else {
    const auto now = c.state();
    JobPtr found;
    for (const auto& [id, job] : now->jobs) {
      const bool later = !found || job->ended.value_or(Time{}) >= found->ended.value_or(Time{});
      if (job::is_final(job->state) && later) found = job;
    }
    if (found) return found;
  }
  return fail(Code::kNotFound, "no_such_job",
              fmt::format("info for \"{}\" job doesn't exist", label));
}

// The end of a file, at most `bytes` of it, beginning with a whole line; "" when there is none.
std::string end_of(const fs::path& file, size_t bytes) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  const std::streamoff from =
      std::max<std::streamoff>(0, size - static_cast<std::streamoff>(bytes));
  std::string out(static_cast<size_t>(size - from), '\0');
  in.seekg(from);
  in.read(out.data(), size - from);
  out.resize(static_cast<size_t>(in.gcount()));
  if (const size_t line = out.find('\n'); from > 0)
    out.erase(0, line == std::string::npos ? line : line + 1);  // what is left of a broken one
  return out;
}

// The end of what its runs have printed.
std::vector<std::string> log_lines(const Controller& c, const job::Job& job) {
  std::string text;
  for (auto stage = job.stages.rbegin(); stage != job.stages.rend(); ++stage) {
    if (stage->run.empty() || text.size() >= kMaxLogBytes) continue;
    text = end_of(c.run_dir(stage->run) / "output.log", kMaxLogBytes - text.size()) + text;
  }
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// "site: install the engine": the running stage and what it does.
std::string task_of(const job::Job& job, const Json& timeline) {
  std::string stage;
  for (const job::StageStatus& s : job.stages) {
    if (!s.run.empty()) stage = s.def.name;
  }
  const Json current = timeline.value("current", Json());
  const std::string task =
      current.is_object() ? get_string(current, "task").value_or("") : std::string();
  return task.empty() ? stage : stage + ": " + task;
}

Result<Response> show_node(const Controller& c, const Request& r) {
  const auto now = c.state();
  const auto node = now->fleet->find(r.param("name"));
  if (!node && node.error().code == Code::kNotFound)
    return fail(Code::kNotFound, "no_such_node",
                fmt::format("node with name {} doesn't exist", fleet::shown(r.param("name"))));
  if (!node) return fail(node.error());
  return Response::json(node_view(**node, busy_nodes(now->jobs)));
}

Result<Response> show_nodes(const Controller& c) {
  Json out = Json::object();
  const auto now = c.state();
  const Busy busy = busy_nodes(now->jobs);
  for (const auto& [id, node] : now->fleet->nodes) out[node.name] = node_view(node, busy);
  return Response::json(out);
}

std::string last_line(const job::Job& job) {
  return one_line(fmt::format("job {}: {}{}{}", job.id, job_status(job.state),
                              job.error.empty() ? "" : ": ", job.error)) +
         "\n";
}

}  // namespace

void add_info_routes(Router& router, Controller& c) {
  router.get("/info/nodes", [&c](const Request&) { return show_nodes(c); });
  router.get("/info/node/{name}", [&c](const Request& r) { return show_node(c, r); });
  router.get("/info/globals", [&c](const Request&) -> Result<Response> {
    return Response::json({{"extra_vars", c.fleet()->globals}});
  });
  const auto timelines = std::make_shared<job::Timelines>(
      [&c](const std::string& run) { return c.run_dir(run); }, c.clock());
  router.get("/info/job/{label}", [&c, timelines](const Request& r) -> Result<Response> {
    const auto job = find_job(c, r.param("label"));
    if (!job) return fail(job.error());
    const Json timeline = job::is_final((*job)->state) ? Json::object() : timelines->of(**job);
    return Response::json(job_view(**job, task_of(**job, timeline), log_lines(c, **job)));
  });
  const auto tails = std::make_shared<JobTails>(c);
  router.get("/info/logs/{label}", [&c, tails](const Request& r) -> Result<Response> {
    const auto job = find_job(c, r.param("label"));
    if (!job) return fail(job.error());
    if (auto gone = log_expired(c, (*job)->id)) return std::move(*gone);
    return follow_text(tails, (*job)->id, last_line);
  });
}

}  // namespace clusterctl::api::compat
