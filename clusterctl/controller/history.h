// What happened to each node: transitions, conditions, changes of its spec, the ends of its jobs,
// with who and why. Derived from each Change and written in the commit that causes it; a bounded
// number is kept for each node, and it goes with the node. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace clusterctl::controller {

struct Change;
struct State;

struct HistoryEntry {
  uint64_t number = 0;  // counts per node; given by the writer, like the time
  Time time{};
  std::string node;  // id
  std::string type;  // that of the event, or "job"
  std::string message;
  std::string job;     // id, or empty
  std::string by;      // who: "uid:0", "token", …; of a job: its initiator
  std::string reason;  // what was given as the reason of the change or the job, or empty
};
Json to_json(const HistoryEntry& entry);  // as answered: without node and number
Json to_record(const HistoryEntry& entry);
Result<HistoryEntry> history_from_record(const Json& record);

using NodeHistory = std::vector<HistoryEntry>;                                // oldest first
using Histories = std::map<std::string, std::shared_ptr<const NodeHistory>>;  // by node id

inline constexpr size_t kHistoryKept = 100;                 // entries of one node
inline constexpr std::chrono::hours kHistoryAge{24 * 365};  // older ones go with the next entry

// "history/<node id>/<10 digits>"
std::string history_key(const std::string& node, uint64_t number);

// What `change`, with all its events, means for the history of its nodes. Presence and Pending are
// not kept: they may come and go by the minute.
std::vector<HistoryEntry> history_of(const State& before, const Change& change);

// Gives the entries their numbers and time; the result: keys of those that go for them.
std::vector<std::string> number_history(const Histories& histories,
                                        std::vector<HistoryEntry>& added, Time now);
// Puts numbered entries in; takes out those that go for them, and whole nodes.
void add_history(Histories& histories, const std::vector<HistoryEntry>& added,
                 const std::set<std::string>& removed_nodes);

}  // namespace clusterctl::controller
