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

}  // namespace

void take_back_wish(const State& now, const job::Job& job, const std::string& node_id,
                    Change& change) {
  const auto wish = job.changes.find(node_id);
  const auto before = job.undo.find(node_id);
  const auto stored = now.fleet->nodes.find(node_id);
  if (wish == job.changes.end() || before == job.undo.end() || stored == now.fleet->nodes.end())
    return;
  if (const job::Job* later = next_wish(now, job, node_id, change)) {
    job::Job told = *later;
    told.undo[node_id] = before->second;
    ++told.resource_version;
    change.jobs[told.id] = std::move(told);
    return;
  }
  const auto changed = change.nodes.find(node_id);
  fleet::Node node = changed == change.nodes.end() ? stored->second : changed->second;
  if (plan::wish_of(node) != wish->second) return;
  fleet::NodeSpec spec = node.spec;
  spec.host_group = before->second.host_group;
  spec.capabilities = before->second.capabilities;
  spec.availability = before->second.availability;
  if (fleet::set_spec(node, std::move(spec))) change.nodes[node_id] = std::move(node);
}

}  // namespace clusterctl::controller
