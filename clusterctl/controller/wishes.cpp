#include "controller/wishes.h"

#include <algorithm>
#include <array>

#include "fleet/operation.h"

namespace clusterctl::controller {
namespace {

// The newest record: that of the change, else the stored one.
const job::Job& newest(const job::Job& stored, const Change& change) {
  const auto it = change.jobs.find(stored.id);
  return it == change.jobs.end() ? stored : it->second;
}

fleet::Node node_now(const State& now, const std::string& node_id, const Change& change) {
  const auto changed = change.nodes.find(node_id);
  return changed == change.nodes.end() ? now.fleet->nodes.at(node_id) : changed->second;
}

// What a wish is about: taken back each for itself, because jobs on one node may want different
// things of it.
struct Field {
  bool (*same)(const plan::SpecChange& a, const plan::SpecChange& b);
  void (*copy)(plan::SpecChange& to, const plan::SpecChange& from);
  bool (*is_true)(const fleet::Node& node, const plan::SpecChange& wish);
};

constexpr std::array kFields{
    Field{[](const auto& a, const auto& b) {
            return a.host_group == b.host_group && a.capabilities == b.capabilities;
          },
          [](auto& to, const auto& from) {
            to.host_group = from.host_group;
            to.capabilities = from.capabilities;
          },
          [](const auto& node, const auto& wish) {
            const auto& applied = node.status.applied;
            return applied && applied->host_group == wish.host_group &&
                   (wish.capabilities.empty() || applied->capabilities == wish.capabilities);
          }},
    Field{[](const auto& a, const auto& b) { return a.availability == b.availability; },
          [](auto& to, const auto& from) { to.availability = from.availability; },
          // In maintenance it is drained for a while: what counts is what it gets back.
          [](const auto& node, const auto& wish) {
            return node.status.applied && plan::availability_before(node) == wish.availability;
          }},
    Field{[](const auto& a, const auto& b) { return a.labels == b.labels; },
          [](auto& to, const auto& from) { to.labels = from.labels; },
          [](const auto&, const auto&) { return false; }},
    Field{[](const auto& a, const auto& b) { return a.vars == b.vars; },
          [](auto& to, const auto& from) { to.vars = from.vars; },
          [](const auto&, const auto&) { return false; }},
};

plan::SpecChange present_wish(const fleet::Node& node) {
  plan::SpecChange out = plan::wish_of(node);
  out.labels = node.spec.labels;
  out.vars = node.spec.vars;
  return out;
}

// Later jobs found what this one wanted: they get to know what was there before. True: one of them
// wants something of its own, which stays.
bool tell_later_jobs(const State& now, const job::Job& job, const std::string& node_id,
                     const Field& field, Change& change) {
  const plan::SpecChange& wish = job.changes.at(node_id);
  for (auto it = now.jobs.upper_bound(job.id); it != now.jobs.end(); ++it) {
    const job::Job& later = newest(*it->second, change);
    const auto found = later.undo.find(node_id);
    if (job::is_final(later.state) || found == later.undo.end() || !later.changes.count(node_id) ||
        !field.same(found->second, wish))
      continue;
    job::Job told = later;
    const bool carries = field.same(told.changes[node_id], told.undo[node_id]);
    field.copy(told.undo[node_id], job.undo.at(node_id));
    if (carries) field.copy(told.changes[node_id], job.undo.at(node_id));
    ++told.resource_version;
    change.jobs[told.id] = std::move(told);
    if (!carries) return true;
  }
  return false;
}

// A job below this one in the pile is still to make true what was there before.
bool earlier_job_wants(const State& now, const job::Job& job, const std::string& node_id,
                       const Field& field, const Change& change) {
  const plan::SpecChange& before = job.undo.at(node_id);
  const auto end = now.jobs.lower_bound(job.id);
  return std::any_of(now.jobs.begin(), end, [&](const auto& entry) {
    const job::Job& earlier = newest(*entry.second, change);
    const auto wish = earlier.changes.find(node_id);
    const auto found = earlier.undo.find(node_id);
    return !job::is_final(earlier.state) && wish != earlier.changes.end() &&
           found != earlier.undo.end() && field.same(wish->second, before) &&
           !field.same(wish->second, found->second);
  });
}

void take_back(const State& now, const job::Job& job, const std::string& node_id,
               const Field& field, Change& change) {
  const plan::SpecChange& wish = job.changes.at(node_id);
  const plan::SpecChange& before = job.undo.at(node_id);
  if (field.same(wish, before) || tell_later_jobs(now, job, node_id, field, change)) return;
  fleet::Node node = node_now(now, node_id, change);
  plan::SpecChange present = present_wish(node);
  if (!field.same(present, wish)) return;
  // Another job has made it true meanwhile, and it stays so.
  if (field.is_true(now.fleet->nodes.at(node_id), wish) &&
      !earlier_job_wants(now, job, node_id, field, change))
    return;
  field.copy(present, before);
  fleet::NodeSpec spec = node.spec;
  set_wish(spec, present);
  if (fleet::set_spec(node, std::move(spec))) change.nodes[node_id] = std::move(node);
}

}  // namespace

void set_wish(fleet::NodeSpec& spec, const plan::SpecChange& wish) {
  spec.host_group = wish.host_group;
  spec.capabilities = wish.capabilities;
  spec.availability = wish.availability;
  if (wish.labels) spec.labels = *wish.labels;
  if (wish.vars) spec.vars = *wish.vars;
}

void keep_found(const job::Job& job, std::map<std::string, plan::SpecChange>& planned) {
  for (auto& [id, wish] : planned) {
    const auto asked = job.changes.find(id);
    const auto found = job.undo.find(id);
    if (asked == job.changes.end() || found == job.undo.end()) continue;
    for (const Field& field : kFields) {
      if (field.same(asked->second, found->second)) field.copy(wish, found->second);
    }
  }
}

void take_back_wish(const State& now, const job::Job& job, const std::string& node_id,
                    Change& change) {
  if (!job.changes.count(node_id) || !job.undo.count(node_id) || !now.fleet->nodes.count(node_id))
    return;
  for (const Field& field : kFields) take_back(now, job, node_id, field, change);
}

}  // namespace clusterctl::controller
