#include "controller/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/time.h"
#include "fleet/node_json.h"
#include "fleet/tombstone.h"
#include "job/job_json.h"

namespace clusterctl::controller {
namespace {

constexpr std::string_view kCommitPrefix = "commit/";
constexpr std::string_view kKeyPrefix = "keys/";  // Idempotency-Keys
constexpr std::string_view kCommitReady = "commit/ready";
constexpr std::string_view kProbeKey = "meta/probe";
constexpr size_t kProbeBytes = 64 << 10;  // as much as a step of a job may need
constexpr size_t kChunkBytes =
    store::kMaxValueBytes / 2;  // escaping inside a chunk may grow its text

std::string event_key(uint64_t seq) {
  return fmt::format("events/{:020}", seq);
}

size_t bytes_of(const store::Operation& op) {
  return op.key.size() + (op.value ? op.value->size() : 0);
}

bool fits(const std::vector<store::Operation>& operations) {
  size_t bytes = 0;
  for (const store::Operation& op : operations) bytes += bytes_of(op);
  return operations.size() <= store::kMaxOperations && bytes <= store::kMaxBatchBytes;
}

// Cuts a list into batches that stay inside the limits.
std::vector<std::vector<store::Operation>> cut(const std::vector<store::Operation>& operations,
                                               size_t max_bytes) {
  std::vector<std::vector<store::Operation>> out(1);
  size_t bytes = 0;
  for (const store::Operation& op : operations) {
    const size_t size = bytes_of(op);
    if (!out.back().empty() &&
        (out.back().size() >= store::kMaxOperations || bytes + size > max_bytes)) {
      out.emplace_back();
      bytes = 0;
    }
    bytes += size;
    out.back().push_back(op);
  }
  return out;
}

Json cluster_json(const fleet::Cluster& c) {
  return {{"v", 1},
          {"id", c.id},
          {"name", c.name},
          {"accept_policy", c.accept_policy},
          {"max_unavailable", c.max_unavailable},
          {"drift_policy", c.drift_policy},
          {"version", c.version}};
}

fleet::Cluster cluster_from(const Json& j) {
  fleet::Cluster c;
  c.id = get_string(j, "id").value_or("");
  c.name = get_string(j, "name").value_or("default");
  c.accept_policy = get_string(j, "accept_policy").value_or("always");
  c.max_unavailable = get_string(j, "max_unavailable").value_or("1");
  c.drift_policy = get_string(j, "drift_policy", "ask").value_or("ask");
  c.version = static_cast<uint64_t>(get_int(j, "version", 1).value_or(1));
  return c;
}

}  // namespace

std::shared_ptr<const State> Writer::state() const {
  MutexLock lock(mutex_);
  return state_;
}

void Writer::publish(State state) {
  auto next = std::make_shared<const State>(std::move(state));
  MutexLock lock(mutex_);
  state_ = std::move(next);
}

Status Writer::load() {
  if (auto done = roll_forward(); !done) return done;
  State state;
  std::vector<Event> events;
  if (auto done = load_records(state, events); !done) return done;
  if (!events.empty()) {
    oldest_seq_ = events.front().seq;
    last_seq_ = events.back().seq;
  }
  events_.append(events);
  publish(std::move(state));
  return {};
}

namespace {

// plans/<id> and what follows below it, in order.
Status collect_plans(const std::map<std::string, std::vector<Json>>& records, State& state) {
  for (const auto& [id, parts] : records) {
    auto plan = plan_from_records(parts);
    if (!plan) return fail(plan.error());
    state.plans[id] = std::make_shared<StoredPlan>(std::move(*plan));
  }
  return {};
}

}  // namespace

Status Writer::load_records(State& state, std::vector<Event>& events) {
  std::map<std::string, std::vector<Json>> plans;
  auto records = store_.load("");
  if (!records) return fail(records.error());
  auto fleet = std::make_shared<fleet::Snapshot>();
  fleet->own_host = own_host_;
  std::map<std::string, NodeHistory> history;
  for (const store::Record& record : *records) {
    revisions_[record.key] = record.revision;
    auto value = parse_json(record.value, "record " + record.key, 64);
    if (!value)
      return fail(Code::kInternal, "damaged", value.error().message,
                  "restore the state directory from a backup");
    const std::string& key = record.key;
    if (key.starts_with("nodes/")) {
      auto node = fleet::node_from_json(*value);
      if (!node) return fail(node.error());
      fleet->nodes[node->id] = std::move(*node);
    } else if (key.starts_with("tombstones/")) {
      fleet->tombstones[key.substr(11)] = fleet::tombstone_from(*value);
    } else if (key.starts_with("jobs/")) {
      auto job = job::from_record(*value);
      if (!job) return fail(job.error());
      const std::string id = job->id;  // taken before the record is moved away
      state.jobs[id] = std::make_shared<job::Job>(std::move(*job));
    } else if (key.starts_with("plans/")) {
      plans[key.substr(6, key.find('/', 6) - 6)].push_back(std::move(*value));
    } else if (key.starts_with(kRevisionPrefix)) {
      if (key.find('/', kRevisionPrefix.size()) != std::string::npos) continue;
      auto revision = revision_from_json(*value);
      if (!revision) return fail(revision.error());
      state.revisions[revision->number] = std::make_shared<Revision>(std::move(*revision));
    } else if (key.starts_with("events/")) {
      auto event = event_from_json(*value);
      if (!event) return fail(event.error());
      events.push_back(std::move(*event));
    } else if (key.starts_with("secrets/")) {
      state.secrets[key.substr(8)] = value->value("value", Json());
      fleet->secret_digests[key.substr(8)] = secret_digest(state.secrets[key.substr(8)]);
    } else if (key.starts_with("tokens/")) {
      auto token = access::api_token_from_record(*value);
      if (!token) return fail(token.error());
      const std::string id = token->id;
      state.tokens[id] = std::move(*token);
    } else if (key.starts_with("history/")) {
      auto entry = history_from_record(*value);
      if (!entry) return fail(entry.error());
      history[entry->node].push_back(std::move(*entry));
    } else if (key.starts_with(kKeyPrefix)) {
      keys_.apply({{key.substr(kKeyPrefix.size()), key_from_record(*value)}});
    } else if (key.starts_with(kJoinTokenPrefix)) {
      auto token = join_token_from(*value);
      if (!token) return fail(token.error());
      state.join_tokens[token->id] = std::move(*token);
    } else if (key.starts_with(kDepartedPrefix)) {
      state.departed[key.substr(kDepartedPrefix.size())] = departed_from(*value);
    } else if (key == "globals") {
      fleet->globals = value->value("vars", Json::object());
      state.globals_revision = record.revision;
    } else if (key == "cluster") {
      fleet->cluster = cluster_from(*value);
    }
  }
  for (auto& [node, entries] : history)
    state.history[node] = std::make_shared<const NodeHistory>(std::move(entries));
  state.fleet = std::move(fleet);
  return collect_plans(plans, state);
}

Result<std::vector<store::Record>> Writer::load(std::string_view prefix) {
  return store_.load(prefix);
}

std::vector<std::string> Writer::keys_below(const std::string& prefix) const {
  std::vector<std::string> out;
  for (auto it = revisions_.lower_bound(prefix);
       it != revisions_.end() && it->first.starts_with(prefix); ++it)
    out.push_back(it->first);
  return out;
}

// What stood there before goes into the store with the change; the oldest revisions go.
void Writer::revise(Change& change, const Put& put, const Remove& remove) {
  const auto now = state();
  auto undone = revision_of(*now->fleet, change);
  if (!undone) return;
  Revision& r = undone->revision;
  r.number = now->revisions.empty() ? 1 : now->revisions.rbegin()->first + 1;
  r.time = clock_.now();
  if (r.what.empty()) r.what = "a job's wish is taken back";
  const std::string key = revision_key(r.number);
  Json head = to_json(r);
  head["v"] = 1;
  put(key, head);
  for (const auto& [id, before] : undone->nodes)
    put(key + "/" + id, {{"v", 1}, {"name", before.name}, {"spec", before.spec}});
  if (undone->globals) put(key + "/globals", {{"v", 1}, {"vars", *undone->globals}});
  size_t kept = 1, nodes = r.nodes();
  for (auto it = now->revisions.rbegin(); it != now->revisions.rend(); ++it) {
    nodes += it->second->nodes();
    if (++kept <= kKeptRevisions && nodes <= kKeptRevisionNodes) continue;
    const std::string old = revision_key(it->first);
    remove(old);
    for (const std::string& below : keys_below(old + "/")) remove(below);
    change.forgotten_revisions.insert(it->first);
  }
  change.revision = std::move(r);
}

std::vector<store::Operation> Writer::operations(Change& change) {
  std::vector<store::Operation> out;
  const auto put = [&](std::string key, const Json& value) {
    const auto known = revisions_.find(key);
    out.push_back(
        {std::move(key), dump_json(value), known == revisions_.end() ? 0 : known->second});
  };
  const auto remove = [&](const std::string& key) {
    if (const auto known = revisions_.find(key); known != revisions_.end())
      out.push_back({key, std::nullopt, known->second});
  };
  for (const auto& [id, node] : change.nodes) put("nodes/" + id, fleet::to_store(node));
  const auto now = state();
  for (const std::string& id : change.removed_nodes) {
    remove("nodes/" + id);
    if (const auto it = now->history.find(id); it != now->history.end()) {
      for (const HistoryEntry& e : *it->second) remove(history_key(id, e.number));
    }
  }
  for (const auto& [id, tombstone] : change.tombstones) {
    if (tombstone) {
      put("tombstones/" + id, fleet::to_json(*tombstone));
    } else {
      remove("tombstones/" + id);
    }
  }
  for (const auto& [id, job] : change.jobs) put("jobs/" + id, job::to_record(job));
  for (const std::string& id : change.removed_jobs) remove("jobs/" + id);
  if (change.globals) put("globals", {{"v", 1}, {"vars", *change.globals}});
  if (change.cluster) put("cluster", cluster_json(*change.cluster));
  for (const auto& [name, value] : change.secrets) {
    if (value) {
      put("secrets/" + name, {{"v", 1}, {"value", *value}});
    } else {
      remove("secrets/" + name);
    }
  }
  for (const auto& [id, token] : change.tokens) {
    if (token) {
      put("tokens/" + id, access::to_record(*token));
    } else {
      remove("tokens/" + id);
    }
  }
  for (const auto& [id, token] : change.join_tokens) {
    const std::string key = std::string(kJoinTokenPrefix) + id;
    if (token) {
      put(key, to_record(*token));
    } else {
      remove(key);
    }
  }
  for (const auto& [id, departed] : change.departed) {
    const std::string key = std::string(kDepartedPrefix) + id;
    if (departed) {
      put(key, to_record(*departed));
    } else {
      remove(key);
    }
  }
  for (const std::string& key : number_history(now->history, change.history, clock_.now()))
    remove(key);
  for (const HistoryEntry& e : change.history) put(history_key(e.node, e.number), to_record(e));
  for (const auto& [id, plan] : change.plans) {
    const std::string key = "plans/" + id;
    std::set<std::string> gone;
    for (std::string& below : keys_below(key + "/")) gone.insert(std::move(below));
    const auto records = plan ? to_records(*plan) : std::vector<Json>();
    for (size_t i = 0; i < records.size(); ++i) {
      const std::string part = i == 0 ? key : fmt::format("{}/{:06}", key, i);
      put(part, records[i]);
      gone.erase(part);
    }
    if (records.empty()) remove(key);
    for (const std::string& below : gone) remove(below);
  }
  for (const auto& [digest, record] : change.keys) {
    const std::string key = std::string(kKeyPrefix) + digest;
    if (record) {
      put(key, to_record(*record));
    } else {
      remove(key);
    }
  }
  revise(change, put, remove);
  uint64_t seq = last_seq_;
  for (Event& event : change.events) {
    event.seq = ++seq;
    event.time = clock_.now();
    Json record = to_json(event);
    record["v"] = 1;
    put(event_key(event.seq), record);
  }
  for (uint64_t old = oldest_seq_; seq - old + 1 > EventLog::kKept && old <= last_seq_; ++old)
    remove(event_key(old));
  return out;
}

Status Writer::commit(Change change) {
  auto done = store(change);
  if (!done || unfinished_.empty()) remember_trouble(done);
  if (!done) return done;
  if (!change.events.empty()) last_seq_ = change.events.back().seq;
  if (last_seq_ >= EventLog::kKept)
    oldest_seq_ = std::max(oldest_seq_, last_seq_ - EventLog::kKept + 1);
  keys_.apply(change.keys);
  publish(apply(*state(), change));
  events_.append(change.events);
  return {};
}

Status Writer::store(Change& change) {
  if (auto done = finish_large(); !done) return done;
  const auto ops = operations(change);
  if (ops.empty()) return {};
  return fits(ops) ? write(ops) : write_large(ops);
}

std::optional<Error> Writer::trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

void Writer::probe() {
  if (!trouble()) return;
  const std::string key(kProbeKey);
  auto done = write({{key, dump_json({{"v", 1}, {"text", std::string(kProbeBytes, '.')}}), {}}});
  if (done) done = write({{key, std::nullopt, std::nullopt}});
  remember_trouble(done);
}

// Said when it begins and when it ends: what is refused meanwhile is tried again and again.
void Writer::remember_trouble(const Status& done) {
  const bool refused = !done && done.error().code == Code::kUnavailable;
  if (!done && !refused) return;
  MutexLock lock(mutex_);
  if (refused && !trouble_) log::error("nothing can be stored: {}", done.error().line());
  if (!refused && trouble_) log::info("the store takes changes again");
  trouble_ = refused ? std::optional(done.error()) : std::nullopt;
}

void Writer::remember(const std::vector<store::Operation>& ops, uint64_t revision) {
  for (const store::Operation& op : ops) {
    if (op.value) {
      revisions_[op.key] = revision;
    } else {
      revisions_.erase(op.key);
    }
  }
}

Status Writer::write(const std::vector<store::Operation>& ops) {
  const auto revision = store_.commit(ops);
  if (!revision) return fail(revision.error());
  remember(ops, *revision);
  return {};
}

Status Writer::write_chunks(const std::vector<store::Operation>& ops, bool expect) {
  for (auto& batch : cut(ops, store::kMaxBatchBytes)) {
    if (!expect) {
      for (store::Operation& op : batch) op.expected = std::nullopt;
    }
    if (auto done = write(batch); !done) return done;
  }
  return {};
}

Status Writer::write_large(const std::vector<store::Operation>& ops) {
  std::vector<store::Operation> chunks;
  for (const auto& part : cut(ops, kChunkBytes)) {
    Json list = Json::array();
    for (const store::Operation& op : part)
      list.push_back({op.key, op.value ? Json(*op.value) : Json()});
    chunks.push_back({fmt::format("{}{:06}", kCommitPrefix, chunks.size()),
                      dump_json({{"v", 1}, {"changes", list}}), std::nullopt});
  }
  if (auto done = write_chunks(chunks, false); !done) return done;
  // From here on the change is valid, whatever happens to this process.
  const Json ready{{"v", 1}, {"chunks", chunks.size()}};
  if (auto done = write({{std::string(kCommitReady), dump_json(ready), std::nullopt}}); !done)
    return done;
  unfinished_ = ops;
  unfinished_.push_back({std::string(kCommitReady), std::nullopt, std::nullopt});
  for (const store::Operation& chunk : chunks)
    unfinished_.push_back({chunk.key, std::nullopt, std::nullopt});
  // It is durable: that the store takes no more just now is the trouble of the next commit.
  if (auto done = finish_large(); !done) remember_trouble(done);
  return {};
}

// In the order of the list, so that "ready" goes when all before it is written.
Status Writer::finish_large() {
  if (auto done = write_chunks(unfinished_, false); !done) return done;
  unfinished_.clear();
  return {};
}

Status Writer::roll_forward() {
  auto records = store_.load(kCommitPrefix);
  if (!records) return fail(records.error());
  if (records->empty()) return {};
  // How many chunks the valid change has; others are left of one that was never completed.
  size_t chunks = 0;
  if (records->back().key == kCommitReady) {
    auto ready = parse_json(records->back().value, "record commit/ready");
    const auto count = ready ? get_int(*ready, "chunks") : fail(ready.error());
    if (!count)
      return fail(Code::kInternal, "damaged", count.error().message,
                  "restore the state directory from a backup");
    chunks = static_cast<size_t>(*count);
  }
  std::vector<store::Operation> ops, clear;
  for (const store::Record& record : *records) {
    clear.push_back({record.key, std::nullopt, std::nullopt});
    if (clear.size() > chunks) continue;
    auto chunk = parse_json(record.value, "record " + record.key);
    if (!chunk)
      return fail(Code::kInternal, "damaged", chunk.error().message,
                  "restore the state directory from a backup");
    for (const Json& change : chunk->at("changes")) {
      const Json& value = change.at(1);
      ops.push_back({change.at(0),
                     value.is_null() ? std::nullopt : std::optional(value.get<std::string>()),
                     std::nullopt});
    }
  }
  if (!ops.empty()) {
    log::info("finishing a change of {} records that the last daemon had begun", ops.size());
    if (auto done = write_chunks(ops, false); !done) return done;
  }
  std::reverse(clear.begin(), clear.end());  // "ready" sorts last: remove it first
  return write_chunks(clear, false);
}

}  // namespace clusterctl::controller
