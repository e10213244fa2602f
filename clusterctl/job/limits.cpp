#include "job/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"

namespace clusterctl::job {

const StageStatus* limited_stage(const Job& job) {
  const auto it = std::find_if(job.stages.begin(), job.stages.end(), [](const StageStatus& s) {
    return !s.run.empty() && !s.puts_back() && !is_final(s.state);
  });
  return it == job.stages.end() ? nullptr : &*it;
}

std::optional<Overrun> overrun(const Job& job, Time now, std::optional<Time> last_output) {
  if (job.state != State::kRunning || job.cancel_requested || !job.started) return std::nullopt;
  const bool closing = std::any_of(job.stages.begin(), job.stages.end(),
                                   [](const StageStatus& s) { return s.closing; });
  if (closing) return std::nullopt;
  const StageStatus* stage = limited_stage(job);
  const std::string where = stage ? " in stage " + stage->def.name : "";
  if (const auto limit = job.request.timeout;
      limit && now - *job.started - job.pause.sum >= *limit) {
    return Overrun{
        "timeout",
        fmt::format("not done within {}{}: stopped by its timeout", format_duration(*limit), where),
        now};
  }
  const auto limit = job.request.silence_timeout;
  if (!limit || !stage || !stage->started) return std::nullopt;
  if (now - std::max(*stage->started, last_output.value_or(Time{})) < *limit) return std::nullopt;
  return Overrun{"silence_timeout",
                 fmt::format("no sign of life for {}{}: stopped by its silence timeout",
                             format_duration(*limit), where),
                 now};
}

}  // namespace clusterctl::job
