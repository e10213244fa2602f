#include "job/undo.h"

#include <algorithm>
#include <set>

#include "fleet/words.h"
#include "job/stay.h"

namespace clusterctl::job {
namespace {

constexpr std::string_view kAvailability = "availability";
constexpr std::string_view kHandover = "handover";
constexpr int kMaxTries = 5;

UndoEntry* open_entry(Job& job, const std::string& node, std::string_view what) {
  for (UndoEntry& e : job.ledger) {
    if (e.node == node && e.what == what && is_open(e.state)) return &e;
  }
  return nullptr;
}

bool missed_its_aim(const Job& job, const std::string& node) {
  const NodeOutcome* n = job.outcome(node);
  if (!n || n->state == OutcomeState::kSucceeded || keeps_out(job, *n)) return false;
  return n->state == OutcomeState::kFailed || n->state == OutcomeState::kCancelled ||
         !job.reason.empty();
}

// A change that is the aim of the job stays when it was made.
bool is_aim(const Job& job, const std::string& node) {
  const NodeOutcome* n = job.outcome(node);
  return plan::availability_of(job.kind).has_value() || job.kind == "maintenance-enter" ||
         job.kind == "maintenance-exit" || (n && keeps_out(job, *n));
}

struct Made {
  std::string_view what;
  std::string from, to;
};

std::string side(bool in_service) {
  return in_service ? "in service" : "aside";
}

// What the run of `stage` makes of this node.
std::optional<Made> made_by(const Job& job, const StageStatus& stage, const fleet::Node& node) {
  if (stage.def.in_service)
    return Made{kHandover, side(!stands_aside(job, node)), side(*stage.def.in_service)};
  const auto to = stage.def.availability.find(node.id);
  if (to == stage.def.availability.end()) return std::nullopt;
  return Made{kAvailability, std::string(fleet::word(plan::last_availability(node))),
              std::string(fleet::word(to->second))};
}

// Earlier tries to put back the same thing.
struct Tries {
  int count = 0;
  bool hung = false;  // it was told to end
  const StageStatus* last = nullptr;
  std::set<std::string> refused;  // managers through which it did not work
};

Tries tries(const Job& job, const fleet::Snapshot& fleet, bool handover) {
  Tries out;
  for (const StageStatus& s : job.stages) {
    if (!s.closing || !s.def.restores || s.def.in_service.has_value() != handover) continue;
    out.hung = out.hung || s.state == StageState::kCancelled;
    ++out.count;
    out.last = &s;
    const fleet::Node* peer = fleet.by_name(s.def.vars.peer);
    if (s.state == StageState::kFailed && peer) out.refused.insert(peer->id);
  }
  return out;
}

std::optional<StageStatus> handover_back(const Job& job, const fleet::Snapshot& fleet,
                                         const catalog::Catalog& catalog) {
  std::map<bool, std::set<std::string>> back;
  for (const UndoEntry& e : job.ledger) {
    if (e.what == kHandover && is_open(e.state) && missed_its_aim(job, e.node))
      back[e.from == side(true)].insert(e.node);
  }
  const Tries before = tries(job, fleet, true);
  // It is the node itself that is asked: nobody else can say it instead.
  const bool refused = before.last && before.last->state == StageState::kFailed;
  if (back.empty() || refused || before.hung || before.count >= kMaxTries) return std::nullopt;
  StageStatus out;
  out.closing = true;
  out.def = plan::handover_stage(fleet, catalog, "undo", back.begin()->second, back.begin()->first);
  out.def.restores = true;
  if (out.def.nodes.empty()) return std::nullopt;
  return out;
}

}  // namespace

void record_changes(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet) {
  if (stage.def.restores) return;
  for (const std::string& id : stage.nodes) {
    const auto node = fleet.nodes.find(id);
    if (node == fleet.nodes.end()) continue;
    const auto made = made_by(job, stage, node->second);
    if (!made) continue;
    if (UndoEntry* e = open_entry(job, id, made->what)) {
      e->to = made->to;  // a further step of the same way: it is the beginning that counts
      e->state = UndoState::kRecorded;
    } else if (made->from != made->to) {
      job.ledger.push_back(
          {id, std::string(made->what), made->from, made->to, UndoState::kRecorded});
    }
  }
}

void settle_changes(Job& job, const StageStatus& stage, const StageOutcome& outcome) {
  if (stage.def.availability.empty() && !stage.def.in_service) return;
  std::set<std::string> failed;
  for (const Failure& f : outcome.failures) failed.insert(f.node);
  for (const std::string& id : stage.nodes) {
    UndoEntry* e = open_entry(job, id, stage.def.in_service ? kHandover : kAvailability);
    if (!e || failed.count(id)) continue;
    e->state = stage.def.restores ? UndoState::kUndone : UndoState::kDone;
  }
}

std::optional<StageStatus> undo_stage(const Job& job, const fleet::Snapshot& fleet,
                                      const catalog::Catalog& catalog) {
  if (job.request.keep_on_failure) return std::nullopt;
  if (auto handover = handover_back(job, fleet, catalog)) return handover;
  std::map<std::string, fleet::Availability> back;
  for (const UndoEntry& e : job.ledger) {
    const auto from = fleet::from_word<fleet::Availability>(e.from);
    if (e.what == kAvailability && is_open(e.state) && from && missed_its_aim(job, e.node))
      back[e.node] = *from;
  }
  const Tries before = tries(job, fleet, false);
  if (back.empty() || before.hung || before.count >= kMaxTries) return std::nullopt;
  StageStatus out;
  out.closing = true;
  out.def = plan::availability_stage(fleet, catalog, "undo", back, before.refused);
  out.def.restores = true;
  out.def.vars.drain_deadline = 0;  // a drain that is put back had been waited for once
  const bool same_way =
      before.last && before.last->state == StageState::kFailed && out.def.vars.peer.empty();
  if (same_way || out.def.nodes.empty()) return std::nullopt;
  return out;
}

void close_ledger(Job& job) {
  for (UndoEntry& e : job.ledger) {
    if (!is_open(e.state)) continue;
    if (!missed_its_aim(job, e.node)) {
      e.state = is_aim(job, e.node) ? UndoState::kKept : UndoState::kFailed;
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
    if (e.node == node.id && e.what == kAvailability && is_open(e.state) && to) return *to;
  }
  // What is wanted may be the aim of a job that waits behind this one.
  if (job.part_of(node.id) != "commission") return plan::last_availability(node);
  const auto change = job.changes.find(node.id);
  return change == job.changes.end() ? node.spec.availability : change->second.availability;
}

}  // namespace clusterctl::job
