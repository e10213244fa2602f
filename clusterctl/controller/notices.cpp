#include "controller/notices.h"

#include "base/time.h"
#include "base/time_json.h"
#include "fleet/words.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kShownFailed = 50;

// Enough to decide whether to look, and never a variable.
Json about(const job::Job& job) {
  std::map<std::string, int64_t> counts;
  Json failed = Json::array();
  for (const job::NodeOutcome& n : job.nodes) {
    ++counts[std::string(to_word(n.state))];
    if (n.state == job::OutcomeState::kFailed && failed.size() < kShownFailed)
      failed.push_back({{"name", n.name}, {"message", n.message}});
  }
  return {{"id", job.id},
          {"kind", job.kind},
          {"title", job.title},
          {"initiator", job.initiator},
          {"state", to_word(job.state)},
          {"reason", job.reason},
          {"error", job.error},
          {"hint", job.hint},
          {"nodes", counts},
          {"failed_nodes", failed},
          {"created", format_time(job.created)},
          {"started", time_or_null(job.started)},
          {"ended", time_or_null(job.ended)}};
}

Json about(const fleet::Node& node) {
  return {{"id", node.id},
          {"name", node.name},
          {"addr", node.spec.addr},
          {"host_group", node.spec.host_group},
          {"lifecycle", fleet::word(node.status.lifecycle)},
          {"presence", fleet::word(node.status.presence)},
          {"last_seen", time_or_null(node.status.last_seen)}};
}

}  // namespace

notify::Source::Page Notices::since(uint64_t seq, size_t limit) const {
  const EventLog::Page page = c_.events().since(seq, limit);
  Page out;
  out.last = page.last;
  out.lost_to = page.gap_to;
  for (const Event& e : page.events) out.events.push_back({e.seq, e.time, e.type});
  return out;
}

std::optional<Json> Notices::describe(uint64_t seq) const {
  const EventLog::Page page = c_.events().since(seq - 1, 1);
  if (page.events.empty() || page.events.front().seq != seq) return std::nullopt;
  const Event& event = page.events.front();
  const auto state = c_.state();
  const fleet::Cluster& cluster = state->fleet->cluster;
  Json out{{"event", to_json(event)}, {"cluster", {{"id", cluster.id}, {"name", cluster.name}}}};
  // Both as they are now: a repetition may say more than the first attempt did.
  if (const auto job = state->jobs.find(event.job); job != state->jobs.end())
    out["job"] = about(*job->second);
  if (const fleet::Node* node = state->fleet->by_name(event.node)) out["node"] = about(*node);
  return out;
}

}  // namespace clusterctl::controller
