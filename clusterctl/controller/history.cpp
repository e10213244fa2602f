#include "controller/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "controller/change.h"
#include "fleet/conditions.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kMaxMessage = 1000;

bool is_kept(const Event& e) {
  static const std::vector<std::string> kTypes{"node.added", "node.updated", "node.lifecycle",
                                               "node.condition"};
  if (std::find(kTypes.begin(), kTypes.end(), e.type) == kTypes.end()) return false;
  return e.type != "node.condition" || !e.message.starts_with(fleet::condition::kPending);
}

const job::Job* find_job(const State& before, const Change& change, const std::string& id) {
  if (const auto it = change.jobs.find(id); it != change.jobs.end()) return &it->second;
  const auto it = before.jobs.find(id);
  return it == before.jobs.end() ? nullptr : it->second.get();
}

std::string id_of(const State& before, const Change& change, const std::string& name) {
  for (const auto& [id, node] : change.nodes) {
    if (node.name == name) return id;
  }
  const fleet::Node* node = before.fleet->by_name(name);
  return node ? node->id : "";
}

std::string outcome_line(const job::Job& job, const job::NodeOutcome& n) {
  std::string out = fmt::format("{} {}", job.kind, to_word(n.state));
  std::string where = n.service.empty() ? n.stage : n.service;
  if (!where.empty() && !n.message.empty()) out += fmt::format(" ({})", where);
  if (!n.message.empty()) out += ": " + n.message;
  if (!n.cleanup.empty()) out += fmt::format("; cleanup: {}", n.cleanup);
  return out;
}

void add_job_ends(const State& before, const Change& change, std::vector<HistoryEntry>& out) {
  for (const auto& [id, job] : change.jobs) {
    const auto was = before.jobs.find(id);
    const bool ended = was != before.jobs.end() && job::is_final(was->second->state);
    if (!job::is_final(job.state) || ended) continue;
    for (const job::NodeOutcome& n : job.nodes) {
      if (!before.fleet->nodes.count(n.node) || change.removed_nodes.count(n.node)) continue;
      HistoryEntry e;
      e.node = n.node;
      e.type = "job";
      e.message = outcome_line(job, n);
      e.job = id;
      e.by = job.initiator;
      e.reason = job.request.reason;
      out.push_back(std::move(e));
    }
  }
}

}  // namespace

Json to_json(const HistoryEntry& e) {
  return {{"time", format_time(e.time)},
          {"type", e.type},
          {"message", e.message},
          {"job", e.job},
          {"by", e.by},
          {"reason", e.reason}};
}

Json to_record(const HistoryEntry& e) {
  Json out = to_json(e);
  out["v"] = 1;
  out["node"] = e.node;
  out["number"] = e.number;
  return out;
}

Result<HistoryEntry> history_from_record(const Json& record) {
  try {
    HistoryEntry e;
    e.number = record.at("number");
    e.node = record.at("node");
    e.type = record.at("type");
    e.message = record.at("message");
    e.job = record.at("job");
    e.by = record.at("by");
    e.reason = record.at("reason");
    auto time = parse_time(record.at("time").get<std::string>());
    if (!time) return fail(time.error());
    e.time = *time;
    return e;
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "damaged",
                std::string("an entry of a node's history cannot be read: ") + error.what(),
                "restore the state directory from a backup");
  }
}

std::string history_key(const std::string& node, uint64_t number) {
  return fmt::format("history/{}/{:010}", node, number);
}

std::vector<HistoryEntry> history_of(const State& before, const Change& change) {
  std::vector<HistoryEntry> out;
  for (const Event& event : change.events) {
    if (event.node.empty() || !is_kept(event)) continue;
    HistoryEntry e;
    e.node = id_of(before, change, event.node);
    if (e.node.empty() || change.removed_nodes.count(e.node)) continue;
    e.type = event.type;
    e.message = event.message;
    e.job = event.job;
    const job::Job* job = event.job.empty() ? nullptr : find_job(before, change, event.job);
    e.by = job ? job->initiator : change.by;
    e.reason = job ? job->request.reason : change.reason;
    out.push_back(std::move(e));
  }
  add_job_ends(before, change, out);
  for (HistoryEntry& e : out) e.message = truncate_utf8(one_line(e.message), kMaxMessage);
  return out;
}

namespace {

// How many of the oldest entries go when `added` come at `now`.
size_t surplus(const NodeHistory& entries, size_t added, Time now) {
  size_t old = 0;
  while (old < entries.size() && now - entries[old].time > kHistoryAge) ++old;
  const size_t all = entries.size() + added;
  const size_t many = all > kHistoryKept ? all - kHistoryKept : 0;
  return std::min(entries.size(), std::max(old, many));
}

using ByNode = std::map<std::string, std::vector<HistoryEntry*>>;

const NodeHistory& entries_of(const Histories& histories, const std::string& node) {
  static const NodeHistory kNone;
  const auto it = histories.find(node);
  return it == histories.end() ? kNone : *it->second;
}

}  // namespace

std::vector<std::string> number_history(const Histories& histories,
                                        std::vector<HistoryEntry>& added, Time now) {
  ByNode by_node;
  for (HistoryEntry& e : added) by_node[e.node].push_back(&e);
  std::vector<std::string> gone;
  for (auto& [node, entries] : by_node) {
    const NodeHistory& have = entries_of(histories, node);
    uint64_t number = have.empty() ? 0 : have.back().number;
    for (HistoryEntry* e : entries) {
      e->number = ++number;
      e->time = now;
    }
    const size_t out = surplus(have, entries.size(), now);
    for (size_t i = 0; i < out; ++i) gone.push_back(history_key(node, have[i].number));
  }
  return gone;
}

void add_history(Histories& histories, const std::vector<HistoryEntry>& added,
                 const std::set<std::string>& removed_nodes) {
  std::map<std::string, NodeHistory> by_node;
  for (const HistoryEntry& e : added) by_node[e.node].push_back(e);
  for (auto& [node, entries] : by_node) {
    const NodeHistory& have = entries_of(histories, node);
    const size_t out = surplus(have, entries.size(), entries.front().time);
    NodeHistory all(have.begin() + static_cast<ptrdiff_t>(out), have.end());
    all.insert(all.end(), entries.begin(), entries.end());
    histories[node] = std::make_shared<const NodeHistory>(std::move(all));
  }
  for (const std::string& node : removed_nodes) histories.erase(node);
}

}  // namespace clusterctl::controller
