#include "cli/job_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "base/time.h"
#include "cli/attach.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kRows = 40;  // of a timeline that nobody asked to see whole

std::string took(const Json& ms) {
  if (!ms.is_number()) return "";
  return format_duration(std::chrono::milliseconds(number(ms)));
}

std::string what(const Json& of) {
  const std::string service = text(of, "service"), task = text(of, "task");
  return service.empty() ? task : service + ": " + task;
}

class Rows {
 public:
  void add(std::string_view key, const std::string& value) {
    if (!value.empty()) out += fmt::format("{:<11}{}\n", fmt::format("{}:", key), value);
  }
  std::string out;
};

// "site: docker: install packages, for 2m05s, on n1, n2 and 3 more"
std::string now_line(const Json& current) {
  if (!current.is_object()) return "";
  std::string out = text(current, "stage") + ": " + what(current);
  if (const std::string t = took(field(current, "ms")); !t.empty()) out += ", for " + t;
  auto names = texts(field(current, "waiting_for"));
  if (names.empty()) return out;
  const auto all = static_cast<size_t>(std::max<int64_t>(0, number(field(current, "waiting"))));
  if (names.size() > 4) names.resize(4);
  out += ", on " + join(names, ", ");
  if (all > names.size()) out += fmt::format(" and {} more", all - names.size());
  return out;
}

void head(const Json& job, const Json& timeline, Rows& rows) {
  const bool ended = is_final_state(text(job, "state"));
  std::string asked;
  if (field(job, "cancel_requested") == true && !ended) {
    asked = " (cancel requested)";
  } else if (field(job, "pause_requested") == true && text(job, "state") == "running") {
    asked = " (pause requested)";
  }
  rows.add("Job", text(job, "id"));
  rows.add("Title", text(job, "title"));
  rows.add("State", text(job, "state") + asked);
  rows.add("Asked by", text(job, "initiator"));
  rows.add("Why", text(field(job, "request"), "reason"));
  rows.add("Created", short_time(field(job, "created")));
  rows.add("Started", short_time(field(job, "started")));
  rows.add("Ended", short_time(field(job, "ended")));
  rows.add("Took", duration(field(job, "started"), field(job, "ended")));
  if (!ended) {
    rows.add("Elapsed", took(field(timeline, "elapsed_ms")));
    rows.add("Now", now_line(field(timeline, "current")));
    rows.add("Silence", took(field(timeline, "silence_ms")));
  }
  rows.add("Waits", waiting_line(job));
  rows.add("Continues", text(job, "continues"));
  rows.add("Continued", text(job, "continued_by"));
  if (field(job, "resumable_until").is_string())
    rows.add("Resumable", "until " + short_time(field(job, "resumable_until")));
  rows.add("Error", text(job, "error"));
  rows.add("Reason", text(job, "reason"));
  rows.add("Hint", text(job, "hint"));
}

std::string stage_table(const Json& job, const Json& timeline) {
  Table table({"STAGE", "STATE", "NODES", "TOOK", "SLOWEST TASK", "RUN"});
  for (const Json& s : field(job, "stages")) {
    std::string slowest, time = duration(field(s, "started"), field(s, "ended"));
    for (const Json& t : field(timeline, "stages")) {
      if (text(t, "run") != text(s, "run")) continue;
      const Json& tasks = field(t, "slowest");
      if (tasks.is_array() && !tasks.empty())
        slowest = fmt::format("{} ({})", fit(what(tasks[0]), 40), took(field(tasks[0], "ms")));
      if (time.empty()) time = took(field(t, "ms"));
    }
    table.add({text(s, "name"), text(s, "state"), std::to_string(field(s, "nodes").size()), time,
               slowest, text(s, "run")});
  }
  return table.empty() ? "" : "\n" + table.render();
}

// "base 3s, docker 1m50s, etcd 12s (failed)"
std::string services_line(const Json& services) {
  std::vector<std::string> parts;
  for (const Json& s : services) {
    if (text(s, "service").empty()) continue;  // the playbook's own tasks
    const std::string state = text(s, "state");
    parts.push_back(fmt::format("{} {}{}", text(s, "service"), took(field(s, "busy_ms")),
                                state == "ok" ? "" : " (" + state + ")"));
  }
  return join(parts, ", ");
}

std::string node_timeline(const Json& timeline, bool wide) {
  Table table({"NODE", "STAGE", "BUSY", "SERVICES"});
  size_t rows = 0, left = 0;
  for (const Json& stage : field(timeline, "stages")) {
    for (const Json& node : field(stage, "nodes")) {
      if (!wide && rows == kRows) {
        ++left;
        continue;
      }
      ++rows;
      table.add({text(node, "name"), text(stage, "name"), took(field(node, "busy_ms")),
                 services_line(field(node, "services"))});
    }
  }
  if (table.empty()) return "";
  const std::string more = left ? fmt::format("… and {} rows more: -o wide\n", left) : "";
  return "\n" + table.render() + more;
}

// Of reasons that several nodes share: what the row of each says instead of, or after, the reason.
struct Shared {
  std::map<std::string, std::string> same_as, also_on;

  explicit Shared(const Json& job) {
    for (const Json& cause : field(job, "causes")) {
      const auto names = texts(field(cause, "nodes"));
      for (size_t i = 1; i < names.size(); ++i) same_as[names[i]] = "same as " + names[0];
      if (names.size() > 1)
        also_on[names[0]] = fmt::format(" (same on {})", count(names.size() - 1, "other node"));
    }
  }
};

// What the check found, grouped by node as the daemon sorted it.
std::string findings(const Json& job) {
  std::string out;
  for (const Json& p : field(job, "problems")) {
    const std::string node = text(p, "node");
    const std::string code = text(p, "code");
    const std::string hint = text(p, "hint");
    out += fmt::format("  {}{}{}\n", node.empty() ? "" : node + ": ", text(p, "message"),
                       code.empty() ? "" : " [" + code + "]");
    if (!hint.empty()) out += "      hint: " + hint + "\n";
  }
  return out.empty() ? "" : "Found:\n" + out;
}

std::string reason_of(const Json& node) {
  std::vector<std::string> cause;
  for (const char* key : {"service", "task", "message"}) {
    if (const std::string part = text(node, key); !part.empty()) cause.push_back(part);
  }
  return join(cause, ": ");
}

// What the job changed of its nodes' state in the scheduler, and whether it was put back.
std::string undo_table(const Json& job) {
  Table undo({"UNDO", "WHAT", "FROM", "TO", "STATE"});
  for (const Json& e : field(job, "undo")) {
    undo.add({text(e, "node"), text(e, "what"), text(e, "from"), text(e, "to"), text(e, "state")});
  }
  return undo.empty() ? "" : "\n" + undo.render();
}

// The hints, of nodes that share a reason once. The findings bring their own.
std::string hints(const Json& job) {
  std::string out;
  if (!field(job, "problems").empty()) return out;
  if (field(job, "causes").empty()) {  // an older daemon
    for (const Json& node : field(job, "nodes")) {
      if (const std::string hint = text(node, "hint"); !hint.empty())
        out += fmt::format("hint: {}: {}\n", text(node, "name"), hint);
    }
  }
  for (const Json& cause : field(job, "causes")) {
    const auto names = texts(field(cause, "nodes"));
    const std::string hint = text(cause, "hint");
    if (hint.empty() || names.empty()) continue;
    out +=
        fmt::format("hint: {}{}: {}\n", names[0],
                    names.size() > 1 ? " and " + count(names.size() - 1, "other node") : "", hint);
  }
  return out;
}

}  // namespace

std::string outcome_table(const Json& job) {
  Table table({"NODE", "RESULT", "STAGE", "CLEANUP", "CAUSE"});
  const Shared shared(job);
  for (const Json& node : field(job, "nodes")) {
    const bool failed = text(node, "state") == "failed" || text(node, "state") == "cancelled";
    std::string cause = failed || !text(node, "message").empty() ? reason_of(node) : "";
    const std::string name = text(node, "name");
    if (const auto it = shared.also_on.find(name); it != shared.also_on.end()) cause += it->second;
    if (const auto it = shared.same_as.find(name); it != shared.same_as.end()) cause = it->second;
    table.add({text(node, "name"), text(node, "state"), failed ? text(node, "stage") : "",
               text(node, "cleanup"), cause});
  }
  return (table.empty() ? "" : table.render()) + hints(job) + findings(job);
}

std::string job_details(const Json& job, const Json& timeline, bool wide) {
  Rows rows;
  head(job, timeline, rows);
  std::string out = rows.out + stage_table(job, timeline) + "\n" + outcome_table(job) +
                    undo_table(job) + node_timeline(timeline, wide);
  for (const Json& w : field(job, "warnings")) {
    const std::string node = text(w, "node");
    out += fmt::format("warning: {}{}\n", node.empty() ? "" : node + ": ", text(w, "message"));
  }
  return out;
}

}  // namespace clusterctl::cli
