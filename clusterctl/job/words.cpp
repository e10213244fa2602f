#include <algorithm>
#include <array>

#include "job/job.h"

namespace clusterctl::job {
namespace {

constexpr std::array<std::string_view, 7> kStates{"queued", "running",   "paused",     "succeeded",
                                                  "failed", "cancelled", "interrupted"};
constexpr std::array<std::string_view, 8> kStageStates{
    "pending", "prepared", "running", "succeeded", "failed", "cancelled", "interrupted", "skipped"};
constexpr std::array<std::string_view, 6> kOutcomes{"pending", "running",   "succeeded",
                                                    "failed",  "cancelled", "untouched"};

constexpr std::array<std::string_view, 5> kUndoStates{"recorded", "done", "undone", "kept",
                                                      "failed"};

}  // namespace

std::string_view to_word(UndoState s) {
  return kUndoStates[static_cast<size_t>(s)];
}

std::string_view to_word(State s) {
  return kStates[static_cast<size_t>(s)];
}
std::vector<std::string> state_words() {
  return {kStates.begin(), kStates.end()};
}
std::string_view to_word(StageState s) {
  return kStageStates[static_cast<size_t>(s)];
}
std::string_view to_word(OutcomeState s) {
  return kOutcomes[static_cast<size_t>(s)];
}

NodeOutcome* Job::outcome(std::string_view node_id) {
  const auto it = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NodeOutcome& n) { return n.node == node_id; });
  return it == nodes.end() ? nullptr : &*it;
}

const NodeOutcome* Job::outcome(std::string_view node_id) const {
  return const_cast<Job*>(this)->outcome(node_id);
}

const std::string& Job::part_of(const std::string& node_id) const {
  const auto part = parts.find(node_id);
  return part == parts.end() ? kind : part->second;
}

plan::Plan Job::as_plan() const {
  plan::Plan plan;
  plan.kind = kind;
  plan.title = title;
  plan.changes = changes;
  plan.roles = roles;
  plan.cleanup = cleanup;
  plan.put_back = put_back;
  plan.parts = parts;
  for (const NodeOutcome& n : nodes) plan.targets.push_back(n.node);
  for (const StageStatus& s : stages) plan.stages.push_back(s.def);
  return plan;
}

}  // namespace clusterctl::job
