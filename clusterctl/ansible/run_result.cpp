#include <fmt/format.h>

#include "ansible/events.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

constexpr size_t kMaxFactsPerHost = 256;

int64_t count(const Json& counts, const char* key) {
  const auto value = get_int(counts, key);
  return value ? *value : 0;
}

Cause cause_of(const Event& event) {
  Cause out{event.host, event.service, event.door, event.task, "", false, {}};
  // A task that ran elsewhere says nothing about the connection to its host.
  if (event.delegate != event.host) out.delegate = event.delegate;
  out.unreachable = event.status == "unreachable" && out.delegate.empty();
  out.evidence = {event.message_lines, event.output_lines, event.rc, event.status == "unreachable",
                  false};
  out.message = plain_line(out.evidence);
  return out;
}

bool changes_something(std::string_view door) {
  return !door.empty() && door != "check" && door != "verify";
}

}  // namespace

void RunResult::feed_line(std::string_view line) {
  const auto event = decode_event(line);
  if (!event) {
    ++bad_lines_;
    return;
  }
  feed(*event);
}

void RunResult::feed(const Event& event) {
  if (event.kind == "play") {
    play_hosts_.clear();
    for (const Json& host : event.value) {
      if (host.is_string() && play_hosts_.size() < kMaxHosts)
        play_hosts_.insert(one_line(host.get_ref<const std::string&>()));
    }
  } else if (event.kind == "task") {
    current_task_ = event.service.empty() ? event.task : event.service + ": " + event.task;
    items_.clear();
    in_flight_ = changes_something(event.door) ? play_hosts_ : std::set<std::string>();
  } else if (event.kind == "result") {
    feed_result(event);
  } else if (event.kind == "fact") {
    if (facts_.size() >= kMaxHosts && !facts_.count(event.host)) return;
    auto& facts = facts_[event.host];
    if (facts.size() < kMaxFactsPerHost || facts.count(event.name)) facts[event.name] = event.value;
  } else if (event.kind == "stats") {
    feed_stats(event);
  } else if (event.kind == "cancelled") {
    cancelled_ = true;
  }
}

void RunResult::feed_result(const Event& event) {
  if (hosts_.size() >= kMaxHosts && !hosts_.count(event.host)) return;
  HostCounts& counts = hosts_[event.host];
  const bool failed = event.status != "ok";
  // The results of a loop come per item, if failed or changed, and once as a whole.
  if (!event.item.empty()) items_.insert(event.host);
  if (event.module && (!event.item.empty() || !items_.count(event.host))) ++counts.module_runs;
  if (event.item.empty()) {
    in_flight_.erase(event.host);
    if (!failed || event.ignored) ++counts.ok;
    if (event.ignored) ++counts.ignored;
    if (failed && !event.ignored)
      ++(event.status == "failed" ? counts.failures : counts.unreachable);
    if (event.changed) ++counts.changed;
  }
  const std::string& where = event.delegate.empty() ? event.host : event.delegate;
  if (event.status == "unreachable") answered_[where] = false;
  if (event.status == "ok" && event.module) answered_[where] = true;
  // A connection that broke during such a task may have broken after the change.
  const bool reached = event.module || event.status == "unreachable";
  if (event.changed || (changes_something(event.door) && reached)) touched_.insert(event.host);
  if (event.changed && !event.service.empty()) changed_services_[event.host].insert(event.service);
  if (failed && !event.ignored) {
    first_failure_.try_emplace(event.host, cause_of(event));
  }
}

void RunResult::feed_stats(const Event& event) {
  has_stats_ = true;
  in_flight_.clear();
  for (const auto& [name, counts] : event.value.items()) {
    const std::string host = one_line(name);
    if (!counts.is_object() || (hosts_.size() >= kMaxHosts && !hosts_.count(host))) continue;
    HostCounts& out = hosts_[host];
    const int64_t module_runs = out.module_runs;
    out = {count(counts, "ok"),
           count(counts, "changed"),
           count(counts, "failures"),
           count(counts, "unreachable"),
           count(counts, "skipped"),
           count(counts, "ignored"),
           module_runs};
    in_stats_.insert(host);
  }
}

std::optional<Cause> RunResult::cause(const std::string& host) const {
  const auto first = first_failure_.find(host);
  if (!has_stats_)
    return first == first_failure_.end() ? std::nullopt : std::optional(first->second);
  const auto counts = hosts_.find(host);
  if (counts == hosts_.end() || (counts->second.failures <= 0 && counts->second.unreachable <= 0))
    return std::nullopt;
  if (first != first_failure_.end()) return first->second;
  return Cause{host,
               "",
               "",
               "",
               "failed, but its event was lost: see the log of the run",
               counts->second.unreachable > 0,
               {}};
}

const Json* RunResult::fact(const std::string& host, const std::string& name) const {
  const auto facts = facts_.find(host);
  if (facts == facts_.end()) return nullptr;
  const auto found = facts->second.find(name);
  return found == facts->second.end() ? nullptr : &found->second;
}

std::vector<std::string> RunResult::changed_services(const std::string& host) const {
  const auto found = changed_services_.find(host);
  return found == changed_services_.end()
             ? std::vector<std::string>()
             : std::vector<std::string>(found->second.begin(), found->second.end());
}

}  // namespace clusterctl::ansible
