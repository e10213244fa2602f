#include "controller/wishes.h"

#include "fleet/operation.h"

namespace clusterctl::controller {
namespace {

// The newest record: that of the change, else the stored one.
const job::Job& newest(const job::Job& stored, const Change& change) {
  const auto it = change.jobs.find(stored.id);
  return it == change.jobs.end() ? stored : it->second;
}

const job::Job* next_wish(const State& now, const job::Job& job, const std::string& node_id,
                          const Change& change) {
  for (auto it = now.jobs.upper_bound(job.id); it != now.jobs.end(); ++it) {
    const job::Job& later = newest(*it->second, change);
    if (!job::is_final(later.state) && later.undo.count(node_id) != 0) return &later;
  }
  return nullptr;
}

// A later job that did not touch these fields only carries them along: they go back with the wish
// that had set them.
bool carries_group(const job::Job& later, const std::string& node_id) {
  const auto wish = later.changes.find(node_id);
  const auto before = later.undo.find(node_id);
  return wish != later.changes.end() && before != later.undo.end() &&
         wish->second.host_group == before->second.host_group &&
         wish->second.capabilities == before->second.capabilities;
}

fleet::Node node_now(const State& now, const std::string& node_id, const Change& change) {
  const auto changed = change.nodes.find(node_id);
  return changed == change.nodes.end() ? now.fleet->nodes.at(node_id) : changed->second;
}

// The same without labels and variables, which only one job at a time sets.
bool same_wish(plan::SpecChange a, plan::SpecChange b) {
  for (plan::SpecChange* c : {&a, &b}) {
    c->labels.reset();
    c->vars.reset();
  }
  return a == b;
}

}  // namespace

void set_wish(fleet::NodeSpec& spec, const plan::SpecChange& wish) {
  spec.host_group = wish.host_group;
  spec.capabilities = wish.capabilities;
  spec.availability = wish.availability;
  if (wish.labels) spec.labels = *wish.labels;
  if (wish.vars) spec.vars = *wish.vars;
}

void take_back_wish(const State& now, const job::Job& job, const std::string& node_id,
                    Change& change) {
  const auto wish = job.changes.find(node_id);
  const auto before = job.undo.find(node_id);
  const auto stored = now.fleet->nodes.find(node_id);
  if (wish == job.changes.end() || before == job.undo.end() || stored == now.fleet->nodes.end())
    return;
  if (const job::Job* later = next_wish(now, job, node_id, change)) {
    job::Job told = *later;
    if (carries_group(told, node_id) && wish->second.host_group != before->second.host_group) {
      fleet::Node node = node_now(now, node_id, change);
      fleet::NodeSpec spec = node.spec;
      spec.host_group = told.changes[node_id].host_group = before->second.host_group;
      spec.capabilities = told.changes[node_id].capabilities = before->second.capabilities;
      if (fleet::set_spec(node, std::move(spec))) change.nodes[node_id] = std::move(node);
    }
    told.undo[node_id] = before->second;
    ++told.resource_version;
    change.jobs[told.id] = std::move(told);
    return;
  }
  fleet::Node node = node_now(now, node_id, change);
  if (!same_wish(plan::wish_of(node), wish->second)) return;
  fleet::NodeSpec spec = node.spec;
  set_wish(spec, before->second);
  if (fleet::set_spec(node, std::move(spec))) change.nodes[node_id] = std::move(node);
}

}  // namespace clusterctl::controller
