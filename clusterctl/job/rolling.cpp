#include "job/rolling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleet/conditions.h"
#include "job/causes.h"
#include "job/finish.h"
#include "job/stay.h"
#include "plan/plan.h"

namespace clusterctl::job {
namespace {

bool has_failed(const NodeOutcome& n) {
  return n.state == OutcomeState::kFailed || n.state == OutcomeState::kCancelled;
}

// Nodes the batch works on, in the order of work: not those that an observation in it only looks
// at.
std::vector<std::string> nodes_of(const Job& job, int batch) {
  std::set<std::string> named;
  for (const StageStatus& s : job.stages) {
    if (s.def.batch == batch && s.def.name != "observe")
      named.insert(s.def.nodes.begin(), s.def.nodes.end());
  }
  std::vector<std::string> out;
  for (const NodeOutcome& n : job.nodes) {
    if (named.count(n.node) && !has_failed(n)) out.push_back(n.node);
  }
  return out;
}

// Work that takes workers out of use only as far as the budget goes. --force steps over it where a
// person takes the nodes out; other kinds have rules of their own (docs/placement.md).
bool asks_budget(const Job& job) {
  return job.kind == "update" ||
         ((job.kind == "maintenance-enter" || job.kind == "reboot") && !job.request.force);
}

plan::Stage narrowed(const plan::Stage& stage, const std::set<std::string>& to) {
  plan::Stage out = stage;
  std::erase_if(out.nodes, [&](const std::string& id) { return !to.count(id); });
  std::erase_if(out.availability, [&](const auto& entry) { return !to.count(entry.first); });
  return out;
}

// `rest` leaves `batch` and follows it as the next one.
void split(Job& job, int batch, const std::set<std::string>& first,
           const std::set<std::string>& rest) {
  std::vector<StageStatus> out;
  std::vector<StageStatus> later;
  for (const StageStatus& s : job.stages) {
    if (s.def.batch > batch && !later.empty()) {
      out.insert(out.end(), later.begin(), later.end());
      later.clear();
    }
    out.push_back(s);
    if (s.def.batch > batch) ++out.back().def.batch;
    if (s.def.batch != batch) continue;
    later.push_back(s);
    later.back().def = narrowed(s.def, rest);
    later.back().def.batch = batch + 1;
    if (later.back().def.nodes.empty()) later.pop_back();
    out.back().def = narrowed(s.def, first);
    if (out.back().def.nodes.empty()) out.pop_back();
  }
  out.insert(out.end(), later.begin(), later.end());
  job.stages = std::move(out);
}

std::string way_on(const Job& job, const NodeOutcome& first) {
  if (is_stay(job.kind) && !first.hint.empty()) return first.hint;
  return fmt::format("`clusterctl node {}` with the same nodes goes on when the cause is gone",
                     plan::command_words(job.kind));
}

std::optional<Stop> too_many_failures(const Job& job) {
  const auto failed = std::count_if(job.nodes.begin(), job.nodes.end(), has_failed);
  if (failed == 0 || failed < job.request.max_failures) return std::nullopt;
  const auto first = std::find_if(job.nodes.begin(), job.nodes.end(), has_failed);
  const bool changed = std::any_of(job.nodes.begin(), job.nodes.end(),
                                   [](const NodeOutcome& n) { return n.touched; });
  return Stop{changed                   ? "node_failed"
              : first->stage == "check" ? "check_failed"
                                        : "node_failed",
              cause_line(*first) + (changed ? "" : "; nothing was changed"),
              changed ? way_on(job, *first) : ""};
}

}  // namespace

bool opens_batch(const Job& job, const StageStatus& stage) {
  if (stage.def.batch == 0 || !stage.run.empty()) return false;
  const auto first = std::find_if(job.stages.begin(), job.stages.end(), [&](const StageStatus& s) {
    return s.def.batch == stage.def.batch;
  });
  return &*first == &stage;
}

bool completes_batch(const Job& job, const StageStatus& stage) {
  if (stage.def.batch == 0 || stage.def.name != "verify") return false;
  return std::all_of(job.stages.begin(), job.stages.end(), [&](const StageStatus& s) {
    return s.def.batch != stage.def.batch || &s >= &stage || s.state == StageState::kSucceeded ||
           s.state == StageState::kFailed;
  });
}

std::optional<Stop> pass_gate(Job& job, const StageStatus& stage, const fleet::Snapshot& fleet,
                              const catalog::Catalog& catalog,
                              const std::set<std::string>& waiting) {
  if (auto stop = too_many_failures(job)) return stop;
  if (!asks_budget(job)) return std::nullopt;
  const int batch = stage.def.batch;
  const std::vector<std::string> nodes = nodes_of(job, batch);
  const plan::Budget budget =
      plan::budget_for(fleet, catalog, job.request.max_unavailable, nodes, waiting);
  if (budget.fits()) return std::nullopt;
  if (job.kind == "maintenance-enter") {  // all of them at the same time, or none
    const Problem problem = plan::over_budget(budget, fleet);
    return Stop{"budget", problem.message, problem.hint};
  }
  const int room = budget.room();
  if (room < 1) {
    const fleet::Node& one = fleet.nodes.at(*budget.away.begin());
    const size_t away = budget.away.size();
    return Stop{
        "budget",
        fmt::format("no further worker may go down: {} of {} {} unavailable ({}{}), and "
                    "max_unavailable is {}",
                    away, budget.workers, away == 1 ? "is" : "are", one.name,
                    away == 1 ? "" : ", …", budget.wanted),
        "bring them back, then `clusterctl job retry --untouched`; or the same anew with a larger "
        "--max-unavailable"};
  }
  std::vector<std::string> costing;  // in the order of work
  for (const std::string& id : nodes) {
    if (budget.costing.count(id)) costing.push_back(id);
  }
  std::set<std::string> first(nodes.begin(), nodes.end());
  const std::set<std::string> rest(costing.begin() + room, costing.end());
  for (const std::string& id : rest) first.erase(id);
  split(job, batch, first, rest);
  return std::nullopt;
}

// The nodes that a stage changes, reached or not.
std::vector<std::string> worked_on(const StageStatus& stage) {
  std::vector<std::string> out = stage.nodes;
  out.insert(out.end(), stage.def.about.begin(), stage.def.about.end());
  return out;
}

std::vector<NodeChange> begin_nodes(Job& job, const StageStatus& stage,
                                    const fleet::Snapshot& fleet, Time now) {
  std::vector<NodeChange> out;
  if (stage.def.batch == 0 || stage.def.name == "observe") return out;
  // What fits into the budget now is taken now, not piece by piece.
  const auto nodes = asks_budget(job) ? nodes_of(job, stage.def.batch) : worked_on(stage);
  for (const std::string& id : nodes) {
    NodeOutcome* n = job.outcome(id);
    const auto node = fleet.nodes.find(id);
    if (!n || n->begun || node == fleet.nodes.end()) continue;
    n->begun = true;
    n->was_out = node->second.status.lifecycle == fleet::Lifecycle::kMaintenance;
    out.emplace_back();
    out.back().id = id;
    out.back().event = begin_event(job.part_of(id));
    if (is_stay(job.kind)) out.back().maintenance = begin_stay(job, node->second, now);
    // It has another end now; whether that has passed as well is looked at anew.
    if (job.kind == "maintenance-enter")
      out.back().clear_conditions.emplace_back(fleet::condition::kMaintenanceOverdue);
  }
  return out;
}

Status check_room(const Proposal& proposal, const fleet::Snapshot& fleet,
                  const catalog::Catalog& catalog, const std::set<std::string>& waiting) {
  if (!asks_budget(proposal.job)) return {};
  std::vector<std::string> nodes;
  for (const NodeChange& c : proposal.nodes) nodes.push_back(c.id);
  const plan::Budget budget =
      plan::budget_for(fleet, catalog, proposal.job.request.max_unavailable, nodes, waiting);
  if (budget.fits()) return {};
  const Problem problem = plan::over_budget(budget, fleet);
  return fail(Code::kConflict, problem.code, problem.message, problem.hint);
}

namespace {

// The last thing that is done with a node that another one replaces.
bool is_removal(const Job& job, const StageStatus& s) {
  if (s.def.name == "forget") return true;
  return s.def.name == "cleanup" && !s.nodes.empty() && job.part_of(s.nodes[0]) == "decommission";
}

}  // namespace

std::vector<NodeChange> finish_batches(Job& job, const fleet::Snapshot& fleet,
                                       const catalog::Catalog& catalog) {
  std::vector<NodeChange> out;
  if (!job.reason.empty()) return out;
  const std::string_view aim = job.kind == "maintenance-enter" ? "drain" : "verify";
  std::set<int> open;
  for (const StageStatus& s : job.stages) {
    if (!is_final(s.state)) open.insert(s.def.batch);
  }
  for (const StageStatus& s : job.stages) {
    const bool last = s.def.name == aim || is_removal(job, s);
    if (s.def.batch == 0 || !last || open.count(s.def.batch)) continue;
    for (const std::string& id : worked_on(s)) {
      NodeOutcome* n = job.outcome(id);
      const bool done = n && n->begun && n->state == OutcomeState::kRunning;
      if (!done || !fleet.nodes.count(id)) continue;
      n->state = OutcomeState::kSucceeded;
      out.push_back(node_done(job, *n, fleet, catalog));
    }
  }
  return out;
}

std::string tally(const Job& job) {
  size_t done = 0, failed = 0;
  for (const NodeOutcome& n : job.nodes) {
    done += n.state == OutcomeState::kSucceeded;
    failed += has_failed(n);
  }
  return fmt::format("{} done, {} failed, {} untouched", done, failed,
                     job.nodes.size() - done - failed);
}

}  // namespace clusterctl::job
