#include "api/metrics.h"

#include <set>

#include "api/exposition.h"
#include "base/this_process.h"
#include "fleet/conditions.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::api {
namespace {

using controller::Controller;
using controller::State;

constexpr const char* kFinalStates[] = {"succeeded", "failed", "cancelled", "interrupted"};

double seconds_of(Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// One number for each word that there is, also when it is zero: a rule finds it before the first
// case.
template <typename Enum, typename Get>
void count_words(Exposition& out, std::string_view label, const fleet::Snapshot& fleet, Get get) {
  std::map<std::string, size_t> counts;
  for (const std::string& word : fleet::all_words<Enum>()) counts[word] = 0;
  for (const auto& [id, node] : fleet.nodes) ++counts[std::string(fleet::word(get(node)))];
  for (const auto& [word, n] : counts) out.sample(static_cast<double>(n), {{label, word}});
}

void node_numbers(Exposition& out, const fleet::Snapshot& fleet) {
  out.gauge("clusterctl_nodes", "Nodes by lifecycle.");
  count_words<fleet::Lifecycle>(out, "lifecycle", fleet,
                                [](const fleet::Node& n) { return n.status.lifecycle; });
  out.gauge("clusterctl_nodes_presence", "Nodes by presence, as the monitor saw them last.");
  count_words<fleet::Presence>(out, "presence", fleet,
                               [](const fleet::Node& n) { return n.status.presence; });
  out.gauge("clusterctl_nodes_acceptance", "Nodes by acceptance.");
  count_words<fleet::Acceptance>(out, "acceptance", fleet,
                                 [](const fleet::Node& n) { return n.spec.acceptance; });
  std::map<std::string_view, size_t> conditions;
  for (const std::string_view type : fleet::condition_types()) conditions[type] = 0;
  for (const auto& [id, node] : fleet.nodes) {
    for (const fleet::Condition& c : node.status.conditions) ++conditions[c.type];
  }
  out.gauge("clusterctl_node_conditions", "Nodes that have a condition, by its type.");
  for (const auto& [type, n] : conditions) out.sample(static_cast<double>(n), {{"type", type}});
  out.gauge("clusterctl_controller_isolated",
            "1 while most nodes are out of sight at once: presence is known from before.");
  out.sample(fleet.isolated_since ? 1 : 0);
}

void service_numbers(Exposition& out, const fleet::Snapshot& fleet,
                     const catalog::Catalog& catalog) {
  std::map<std::string_view, std::pair<size_t, size_t>> counts;  // nodes, healthy
  for (const auto& [id, node] : fleet.nodes) {
    if (!node.status.applied || !fleet::is_commissioned(node)) continue;
    for (const std::string& service : node.status.applied->services) {
      const auto seen = node.status.services.find(service);
      auto& [all, healthy] = counts[service];
      ++all;
      healthy += seen != node.status.services.end() && seen->second.healthy;
    }
  }
  std::erase_if(counts, [&](const auto& entry) {  // known to a catalog that was replaced since
    return !catalog.service(std::string(entry.first));
  });
  out.gauge("clusterctl_service_nodes", "Commissioned nodes that carry a service.");
  for (const auto& [name, n] : counts)
    out.sample(static_cast<double>(n.first), {{"service", name}});
  out.gauge("clusterctl_service_nodes_healthy",
            "Those of them whose last report on the service was good.");
  for (const auto& [name, n] : counts)
    out.sample(static_cast<double>(n.second), {{"service", name}});
}

void quorum_numbers(Exposition& out, const fleet::Snapshot& fleet,
                    const catalog::Catalog& catalog) {
  std::vector<fleet::View> views = plan::observe_members(fleet, catalog);
  std::erase_if(views, [](const fleet::View& view) { return view.members.empty(); });
  const auto each = [&](auto value) {
    for (const fleet::View& view : views)
      out.sample(static_cast<double>(value(view)), {{"service", view.service}});
  };
  out.gauge("clusterctl_quorum_members", "Voting members of a service that needs a majority.");
  each([](const fleet::View& v) { return v.count().total; });
  out.gauge("clusterctl_quorum_members_reachable", "Those of them that answer.");
  each([](const fleet::View& v) { return v.count().reachable; });
  out.gauge("clusterctl_quorum_margin",
            "Members that may fail before the majority is lost; below zero: it is lost.");
  each([](const fleet::View& v) { return v.count().reachable - fleet::majority(v.count().total); });
  out.gauge("clusterctl_quorum_observed_timestamp_seconds",
            "When the members were observed; 0: never.");
  each([](const fleet::View& v) { return v.observed ? seconds_of(*v.observed) : 0; });
}

// Jobs that have not ended, and their playbook runs.
void open_job_numbers(Exposition& out, const Controller& c, const State& now) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> counts;
  for (const std::string& kind : plan::kKinds) {
    for (const char* state : {"queued", "running", "paused"}) counts[{kind, state}] = 0;
  }
  size_t queued = 0, runs = 0;
  std::optional<Time> oldest;
  for (const auto& [id, job] : now.jobs) {
    if (job::is_final(job->state)) continue;
    ++counts[{job->kind, to_word(job->state)}];
    for (const job::StageStatus& stage : job->stages)
      runs += stage.state == job::StageState::kRunning || stage.state == job::StageState::kPrepared;
    if (job->state != job::State::kQueued) continue;
    ++queued;
    oldest = std::min(oldest.value_or(job->created), job->created);
  }
  out.gauge("clusterctl_jobs", "Jobs that have not ended, by kind and state.");
  for (const auto& [key, n] : counts)
    out.sample(static_cast<double>(n), {{"kind", key.first}, {"state", key.second}});

  std::map<std::string, size_t> waiting{
      {"node", 0}, {"managers", 0}, {"plan", 0}, {"parallel_runs", 0}};
  for (const auto& [id, conflict] : c.waiting(now)) ++waiting[conflict.reason];
  out.gauge("clusterctl_jobs_waiting", "Jobs that something stands in the way of, by what it is.");
  for (const auto& [reason, n] : waiting) out.sample(static_cast<double>(n), {{"reason", reason}});

  out.gauge("clusterctl_job_queue_length", "Jobs that have not begun.");
  out.sample(static_cast<double>(queued));
  out.gauge("clusterctl_job_queue_oldest_wait_seconds",
            "For how long the oldest job that has not begun waits.");
  const std::chrono::duration<double> wait =
      oldest ? std::max(c.clock().now() - *oldest, std::chrono::milliseconds(0))
             : std::chrono::milliseconds(0);
  out.sample(wait.count());
  out.gauge("clusterctl_runs_running", "Playbook runs that have begun and not ended.");
  out.sample(static_cast<double>(runs));
}

void ended_job_numbers(Exposition& out, const Controller& c) {
  auto numbers = c.tallies().numbers();
  for (const std::string& kind : plan::kKinds) {
    for (const char* state : kFinalStates) numbers.ended_jobs.try_emplace({kind, state}, 0);
    numbers.job_time.try_emplace(kind);
  }
  out.counter("clusterctl_jobs_ended_total", "Jobs that ended since the daemon started.");
  for (const auto& [key, n] : numbers.ended_jobs)
    out.sample(static_cast<double>(n), {{"kind", key.first}, {"state", key.second}});
  out.summary("clusterctl_job_duration_seconds",
              "From the start to the end of the jobs that ended since the daemon started.");
  for (const auto& [kind, time] : numbers.job_time) {
    out.sample(time.sum, {{"kind", kind}}, "_sum");
    out.sample(static_cast<double>(time.count), {{"kind", kind}}, "_count");
  }
  out.counter("clusterctl_runs_ended_total", "Playbook runs that ended since the daemon started.");
  for (const auto& [key, n] : numbers.ended_runs)
    out.sample(static_cast<double>(n), {{"playbook", key.first}, {"state", key.second}});
}

void store_numbers(Exposition& out, const Controller& c, const Meters& meters) {
  out.gauge("clusterctl_store_trouble", "1 while the store takes no changes.");
  out.sample(c.store_trouble() ? 1 : 0);
  out.counter("clusterctl_fleet_events_total", "Fleet events ever: the number of the last one.");
  out.sample(static_cast<double>(c.events().last()));
  if (!meters.store) return;
  const auto numbers = meters.store();
  out.histogram("clusterctl_store_commit_duration_seconds", "Time of durable commits.");
  out.sample(numbers.commits);
  out.counter("clusterctl_store_commit_failures_total", "Commits that the store refused.");
  out.sample(static_cast<double>(numbers.failed));
}

void http_numbers(Exposition& out, const Meters& meters) {
  out.histogram("clusterctl_http_request_duration_seconds",
                "Time until the answer was made, by route; route \"none\": refused before one was "
                "found. Streams count until they begin.");
  for (const auto& [key, times] : meters.requests.read()) {
    const auto& [method, route, code] = key;
    out.sample(times, {{"method", method}, {"route", route}, {"code", code}});
  }
  if (!meters.engine) return;
  const EngineNumbers engine = meters.engine();
  out.gauge("clusterctl_http_connections", "Open connections without those of followers.");
  out.sample(static_cast<double>(engine.unix_connections), {{"listener", "unix"}});
  out.sample(static_cast<double>(engine.tcp_connections), {{"listener", "tcp"}});
  out.gauge("clusterctl_http_followers", "Streams of events and logs that are followed.");
  out.sample(static_cast<double>(engine.followers));
  out.gauge("clusterctl_http_followers_max", "How many there may be.");
  out.sample(static_cast<double>(engine.max_followers));
}

// The URLs of receivers may be secret; their names are the operator's.
void receiver_numbers(Exposition& out, const notify::Notifier* notifier) {
  const Json receivers =
      notifier ? notifier->view().value("receivers", Json::array()) : Json::array();
  if (receivers.empty()) return;
  const auto each = [&](const char* key) {
    for (const Json& r : receivers) {
      const std::string name = r.value("name", "");
      out.sample(r.value(key, 0.0), {{"receiver", name}});
    }
  };
  out.gauge("clusterctl_notifications_pending", "Events that a receiver has not got yet.");
  each("pending");
  out.counter("clusterctl_notifications_delivered_total", "Since the daemon started.");
  each("delivered");
  out.counter("clusterctl_notifications_failures_total",
              "Attempts that failed since the daemon started.");
  each("failures");
  out.counter("clusterctl_notifications_dropped_total", "Given up since the daemon started.");
  each("dropped");
}

void process_numbers(Exposition& out, const Controller& c, const About& about) {
  out.gauge("clusterctl_build_info", "Versions; always 1.");
  out.sample(1, {{"version", about.version}, {"ansible", about.ansible}});
  const auto p = this_process();
  if (!p) return;
  const auto gauge = [&](const char* name, const char* help, double value) {
    out.gauge(name, help);
    out.sample(value);
  };
  out.counter("process_cpu_seconds_total", "User and system time of the daemon.");
  out.sample(p->cpu_seconds);
  gauge("process_start_time_seconds", "When the daemon started, Unix time.", p->started);
  gauge("clusterctl_uptime_seconds", "For how long the daemon runs.",
        std::max(0.0, seconds_of(c.clock().now()) - p->started));
  gauge("process_resident_memory_bytes", "Resident memory.", static_cast<double>(p->resident));
  gauge("process_virtual_memory_bytes", "Virtual memory.", static_cast<double>(p->virtual_size));
  gauge("process_threads", "Threads.", static_cast<double>(p->threads));
  gauge("process_open_fds", "Open file descriptors.", static_cast<double>(p->open_descriptors));
  gauge("process_max_fds", "How many there may be.", static_cast<double>(p->max_descriptors));
}

}  // namespace

std::string render_metrics(const Controller& c, const About& about,
                           const notify::Notifier* notifier, const Meters& meters) {
  const auto now = c.state();
  Exposition out;
  process_numbers(out, c, about);
  node_numbers(out, *now->fleet);
  service_numbers(out, *now->fleet, c.catalog());
  quorum_numbers(out, *now->fleet, c.catalog());
  open_job_numbers(out, c, *now);
  ended_job_numbers(out, c);
  store_numbers(out, c, meters);
  http_numbers(out, meters);
  receiver_numbers(out, notifier);
  return out.take();
}

void add_metrics_route(Router& router, const Controller& c, About about,
                       const notify::Notifier* notifier, const Meters& meters) {
  router.get("/metrics",
             [&c, about = std::move(about), notifier, &meters](const Request&) -> Result<Response> {
               Response response = Response::text(render_metrics(c, about, notifier, meters));
               response.content_type = kExpositionType;
               return response;
             });
}

}  // namespace clusterctl::api
