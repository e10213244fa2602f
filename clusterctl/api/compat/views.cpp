#include "api/compat/views.h"

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/recognize.h"
#include "fleet/words.h"

namespace clusterctl::api::compat {
namespace {

using fleet::Lifecycle;
using fleet::Presence;

std::string serial_of(const fleet::Node& node) {
  if (node.status.identity && !node.status.identity->serial.empty())
    return node.status.identity->serial;
  return node.status.hardware ? node.status.hardware->serial : "";
}

// Names made of a report are "label-serial".
std::string label_of(const fleet::Node& node, const std::string& serial) {
  const std::string tail = node_name("", serial);
  if (serial.empty() || node.name.size() <= tail.size() || !node.name.ends_with(tail))
    return node.name;
  return node.name.substr(0, node.name.size() - tail.size());
}

// contiv keeps the status before; a node that never had another one was "Incomplete".
std::string_view previous_status(const fleet::Node& node, std::string_view now) {
  const std::string_view stored = fleet::word(node.status.lifecycle);
  if (is_broken(node) && now == fleet::word(Lifecycle::kUnallocated))
    return fleet::word(Lifecycle::kMaintenance);
  if (stored != now) return stored;
  return node.status.previous ? fleet::word(*node.status.previous) : "Incomplete";
}

// The status that work of this kind gives a node while it goes on; "": its own.
std::string_view busy_word(std::string_view kind) {
  static const std::map<std::string_view, Lifecycle> kWords{
      {"commission", Lifecycle::kProvisioning},      {"decommission", Lifecycle::kCancelled},
      {"update", Lifecycle::kMaintenance},           {"promote", Lifecycle::kMaintenance},
      {"demote", Lifecycle::kMaintenance},           {"reboot", Lifecycle::kMaintenance},
      {"maintenance-enter", Lifecycle::kMaintenance}};
  const auto it = kWords.find(kind);
  return it == kWords.end() ? "" : fleet::word(it->second);
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

}  // namespace

bool is_broken(const fleet::Node& node) {
  const Lifecycle now = node.status.lifecycle;
  return (now == Lifecycle::kMaintenance || now == Lifecycle::kAllocated) &&
         !node.status.maintenance && fleet::has_condition(node.status, fleet::condition::kFailed);
}

Busy busy_nodes(const std::map<std::string, std::shared_ptr<const job::Job>>& jobs) {
  Busy out;
  for (const auto& [id, job] : jobs) {
    if (job::is_final(job->state)) continue;
    for (const job::NodeOutcome& n : job->nodes) {
      const bool open =
          n.state == job::OutcomeState::kPending || n.state == job::OutcomeState::kRunning;
      const std::string_view word = busy_word(job->part_of(n.node));
      if (open && !word.empty()) out[n.node] = word;
    }
  }
  return out;
}

std::string_view status_word(const fleet::Node& node, const Busy& busy) {
  if (const auto it = busy.find(node.id); it != busy.end()) return it->second;
  return fleet::word(is_broken(node) ? Lifecycle::kUnallocated : node.status.lifecycle);
}

Json node_view(const fleet::Node& node, const Busy& busy) {
  const std::string serial = serial_of(node);
  const std::string_view status = status_word(node, busy);
  Json vars{{"node_name", node.name}, {"node_addr", node.spec.addr}};
  for (const auto& [name, value] : node.spec.vars.items()) vars[name] = as_text(value);
  const Presence before =
      node.status.presence == Presence::kDisappeared ? Presence::kDiscovered : Presence::kUnknown;
  return {{"monitoring_state",
           {{"label", label_of(node, serial)},
            {"serial_number", serial},
            {"management_address", node.spec.addr}}},
          {"inventory_state",
           {{"name", node.name},
            {"status", status},
            {"prev_status", previous_status(node, status)},
            {"state", fleet::word(node.status.presence)},
            {"prev_state", fleet::word(before)}}},
          {"configuration_state",
           {{"inventory_name", node.name},
            {"host_group",
             node.status.applied ? node.status.applied->host_group : node.spec.host_group},
            {"ssh_address", node.spec.addr},
            {"inventory_vars", std::move(vars)}}}};
}

std::string_view job_status(job::State state) {
  switch (state) {
    case job::State::kQueued:
      return "Queued";
    case job::State::kRunning:
    case job::State::kPaused:
      return "Running";
    case job::State::kSucceeded:
      return "Complete";
    case job::State::kFailed:
    case job::State::kCancelled:
    case job::State::kInterrupted:
      break;
  }
  return "Errored";
}

Json job_view(const job::Job& job, std::string task, const std::vector<std::string>& logs) {
  return {{"desc", job.title},
          {"task", std::move(task)},
          {"status", job_status(job.state)},
          {"error", job.error},
          {"logs", logs}};
}

std::string node_name(std::string_view label, std::string_view serial) {
  std::string out = fleet::normal_label(label);
  const std::string tail = lower(trim(serial));
  if (tail.empty()) return out;
  out += '-';
  for (const char c : tail) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (fits) {
      out += c;
    } else if (out.back() != '-') {
      out += '-';
    }
  }
  return out;
}

}  // namespace clusterctl::api::compat
