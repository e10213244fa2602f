#include "job/undo.h"

#include <algorithm>
#include <set>

#include "fleet/words.h"

namespace clusterctl::job {
namespace {

constexpr std::string_view kAvailability = "availability";
constexpr int kMaxTries = 5;

UndoEntry* open_entry(Job& job, const std::string& node, std::string_view what) {
  for (UndoEntry& e : job.ledger) {
    if (e.node == node && e.what == what && is_open(e.state)) return &e;
  }
  return nullptr;
}

bool missed_its_aim(const Job& job, const std::string& node) {
  const NodeOutcome* n = job.outcome(node);
  if (!n || n->state == OutcomeState::kSucceeded) return false;
  return n->state == OutcomeState::kFailed || n->state == OutcomeState::kCancelled ||
         !job.reason.empty();
}

// A change that is the aim of the job stays when it was made.
bool is_aim(const Job& job) {
  return plan::availability_of(job.kind).has_value();
}

}  // namespace

void record_changes(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet) {
  if (stage.def.restores) return;
  for (const std::string& id : stage.nodes) {
    const auto to = stage.def.availability.find(id);
    const auto node = fleet.nodes.find(id);
    if (to == stage.def.availability.end() || node == fleet.nodes.end()) continue;
    const fleet::Availability from = plan::last_availability(node->second);
    if (from == to->second || open_entry(job, id, kAvailability)) continue;
    job.ledger.push_back({id, std::string(kAvailability), std::string(fleet::word(from)),
                          std::string(fleet::word(to->second)), UndoState::kRecorded});
  }
}

void settle_changes(Job& job, const StageStatus& stage, const StageOutcome& outcome) {
  if (stage.def.availability.empty()) return;
  std::set<std::string> failed;
  for (const Failure& f : outcome.failures) failed.insert(f.node);
  for (const std::string& id : stage.nodes) {
    UndoEntry* e = open_entry(job, id, kAvailability);
    if (!e || failed.count(id)) continue;
    e->state = stage.def.restores ? UndoState::kUndone : UndoState::kDone;
  }
}

std::optional<StageStatus> undo_stage(const Job& job, const fleet::Snapshot& fleet,
                                      const catalog::Catalog& catalog) {
  if (job.request.keep_on_failure) return std::nullopt;
  std::map<std::string, fleet::Availability> back;
  for (const UndoEntry& e : job.ledger) {
    const auto from = fleet::from_word<fleet::Availability>(e.from);
    if (is_open(e.state) && from && missed_its_aim(job, e.node)) back[e.node] = *from;
  }
  int tries = 0;
  const StageStatus* last = nullptr;
  std::set<std::string> refused;  // managers through which it did not work
  for (const StageStatus& s : job.stages) {
    if (!s.closing || !s.def.restores) continue;
    if (s.state == StageState::kCancelled) return std::nullopt;  // it hung, and was told to end
    ++tries;
    last = &s;
    const fleet::Node* peer = fleet.by_name(s.def.vars.peer);
    if (s.state == StageState::kFailed && peer) refused.insert(peer->id);
  }
  if (back.empty() || tries >= kMaxTries) return std::nullopt;
  StageStatus out;
  out.closing = true;
  out.def = plan::availability_stage(fleet, catalog, "undo", back, refused);
  out.def.restores = true;
  out.def.vars.drain_deadline = 0;  // a drain that is put back had been waited for once
  const bool same_way = last && last->state == StageState::kFailed && out.def.vars.peer.empty();
  if (same_way || out.def.nodes.empty()) return std::nullopt;
  return out;
}

void close_ledger(Job& job) {
  for (UndoEntry& e : job.ledger) {
    if (!is_open(e.state)) continue;
    if (!missed_its_aim(job, e.node)) {
      e.state = is_aim(job) ? UndoState::kKept : UndoState::kFailed;
    } else {
      e.state = job.request.keep_on_failure ? UndoState::kKept : UndoState::kFailed;
    }
  }
}

fleet::Availability availability_during(const Job& job, const StageStatus& stage,
                                        const fleet::Node& node) {
  if (const auto set = stage.def.availability.find(node.id); set != stage.def.availability.end())
    return set->second;
  for (const UndoEntry& e : job.ledger) {
    const auto to = fleet::from_word<fleet::Availability>(e.to);
    if (e.node == node.id && is_open(e.state) && to) return *to;
  }
  // What is wanted may be the aim of a job that waits behind this one.
  return job.part_of(node.id) == "commission" ? node.spec.availability
                                              : plan::last_availability(node);
}

}  // namespace clusterctl::job
