#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

std::optional<Time> time_of(const Json& value) {
  const auto t = parse_time(text(value));
  return t ? std::optional(*t) : std::nullopt;
}

std::string spaced(std::string text, int width) {
  const int missing = width - display_width(text);
  if (missing > 0) text.append(static_cast<size_t>(missing), ' ');
  return text;
}

std::string what(const std::string& service, const std::string& task) {
  return service.empty() ? task : task.empty() ? service : service + ": " + task;
}

}  // namespace

Progress::Progress(const std::vector<std::string>& nodes) {
  for (const std::string& name : nodes) nodes_[name];
}

std::vector<std::string> Progress::feed(const client::SseMessage& message, Ms now) {
  if (message.event == "end") {
    ended_ = true;
    return {};
  }
  const auto document = parse_json_object(message.data, "event");
  if (!document) return {};
  last_local_ = now;
  if (message.event == "stage") return feed_stage(*document);
  if (message.event == "state") return feed_state(*document);
  return message.event == "task" ? feed_task(*document) : std::vector<std::string>{};
}

// Between two stages: somebody paused the job, or let it go on.
std::vector<std::string> Progress::feed_state(const Json& document) {
  const bool paused = text(document, "state") == "paused";
  if (paused == paused_) return {};
  paused_ = paused;
  return {paused ? "paused; clusterctl job resume lets it go on" : "goes on"};
}

std::vector<std::string> Progress::feed_task(const Json& event) {
  if (const auto t = time_of(field(event, "t"))) {
    last_ = t;
    if (!first_) first_ = t;
    if (!stage_start_) stage_start_ = t;
  }
  stage_over_ = false;
  const std::string kind = text(event, "event");
  if (kind == "task") {
    service_ = text(event, "service");
    task_ = text(event, "task");
    return {};
  }
  if (kind == "result") return feed_result(event);
  if (kind == "cancelled") return {since_start(last_) + " the run was cancelled"};
  return {};
}

std::vector<std::string> Progress::feed_result(const Json& event) {
  const auto it = nodes_.find(text(event, "host"));
  if (it == nodes_.end()) return {};  // a peer, or a host of somebody's invention
  auto& [name, node] = *it;
  const std::string service = text(event, "service");
  node.last = last_;
  node.task = text(event, "task");
  if (field(event, "changed") == true) ++node.changed;
  std::vector<std::string> lines;
  if (!service.empty() && service != node.service)
    lines.push_back(since_start(last_) + " " + name + ": " + service);
  node.service = service;
  const std::string status = text(event, "status");
  if ((status == "failed" || status == "unreachable") && field(event, "ignored") != true) {
    const std::string message = text(event, "msg");
    node.failure = what(service, node.task) + ": " + (message.empty() ? status : message);
    lines.push_back(since_start(last_) + " " + name + ": " + status + ": " + node.failure);
  }
  return lines;
}

// A stage is told when it begins and perhaps when it ends; after a reconnect, or when a job is
// watched late, it is told again with whatever state it has by then.
std::vector<std::string> Progress::feed_stage(const Json& stage) {
  const std::string name = text(stage, "name");
  const std::string run = text(stage, "run");
  const std::string key = run.empty() ? name : run;
  if (key != stage_key_) return begin_stage(key, stage);
  const std::string state = text(stage, "state");
  const bool final =
      state == "succeeded" || state == "failed" || state == "cancelled" || state == "interrupted";
  if (!final || stage_over_) return {};
  stage_over_ = true;
  const std::string took = duration(field(stage, "started"), field(stage, "ended"));
  return {fmt::format("{}: {}{}", name, state, took.empty() ? "" : " after " + took)};
}

std::vector<std::string> Progress::begin_stage(const std::string& key, const Json& stage) {
  stage_key_ = key;
  stage_ = text(stage, "name");
  stage_over_ = false;
  service_.clear();
  task_.clear();
  stage_start_ = time_of(field(stage, "started"));
  if (stage_start_ && !first_) first_ = stage_start_;
  if (!last_ || (stage_start_ && *stage_start_ > *last_)) last_ = stage_start_;
  const std::vector<std::string> targets = texts(field(stage, "nodes"));
  // An observation looks at managers that are no nodes of the job: they are shown while it lasts.
  for (const std::string& name : targets) nodes_.try_emplace(name);
  for (auto& [name, node] : nodes_) {
    node = Node{};
    node.in_stage = std::find(targets.begin(), targets.end(), name) != targets.end();
  }
  if (targets.empty()) return {stage_};  // looks at members that are no targets
  return {fmt::format("{}: {}", stage_, count(targets.size(), "node"))};
}

std::string Progress::since_start(const std::optional<Time>& t) const {
  const Ms passed = t && first_ && *t > *first_ ? *t - *first_ : Ms{0};
  return fmt::format("{:>7}", format_duration(passed));
}

Progress::Ms Progress::running(Ms now) const {
  const Ms known = last_ && stage_start_ && *last_ > *stage_start_ ? *last_ - *stage_start_ : Ms{0};
  return known + std::max(Ms{0}, now - last_local_);
}

std::string Progress::node_line(const std::string& name, const Node& node,
                                size_t name_width) const {
  const std::string padded = spaced(name, static_cast<int>(name_width));
  if (!node.failure.empty()) return fmt::format("  {}  failed   {}", padded, node.failure);
  if (!node.last) return fmt::format("  {}  waiting", padded);
  const std::string at = node.last && stage_start_ && *node.last > *stage_start_
                             ? format_duration(*node.last - *stage_start_)
                             : format_duration(Ms{0});
  return fmt::format("  {}  {:<7}  {}{}", padded, at, what(node.service, node.task),
                     node.changed > 0 ? fmt::format(" ({} changed)", node.changed) : "");
}

std::vector<std::string> Progress::block(int width, int max_lines, Ms now) const {
  std::vector<std::string> out;
  if (stage_.empty() || stage_over_ || max_lines < 2) return out;
  const std::string doing = what(service_, task_);
  out.push_back(fit(fmt::format("{}  {}{}{}", stage_, format_duration(running(now)),
                                doing.empty() ? "" : "  ", doing),
                    width));
  size_t name_width = 0;
  size_t shown = 0, members = 0;
  for (const auto& [name, node] : nodes_) {
    if (!node.in_stage) continue;
    ++members;
    name_width = std::max(name_width, static_cast<size_t>(display_width(name)));
  }
  const size_t room = static_cast<size_t>(max_lines) - 1;
  const size_t limit = members <= room ? members : room - 1;
  for (const auto& [name, node] : nodes_) {
    if (!node.in_stage || shown == limit) continue;
    out.push_back(fit(node_line(name, node, name_width), width));
    ++shown;
  }
  if (shown < members) out.push_back(fmt::format("  … and {} more", members - shown));
  return out;
}

}  // namespace clusterctl::cli
