#include "controller/change.h"

#include "base/digest.h"

namespace clusterctl::controller {

std::string secret_digest(const Json& value) {
  return sha256_hex(dump_json(value)).substr(0, 16);
}

State apply(const State& state, const Change& change) {
  State next = state;
  auto fleet = std::make_shared<fleet::Snapshot>(*state.fleet);
  ++fleet->revision;
  for (const auto& [id, node] : change.nodes) fleet->nodes[id] = node;
  for (const std::string& id : change.removed_nodes) fleet->nodes.erase(id);
  for (const auto& [id, tombstone] : change.tombstones) {
    if (tombstone) {
      fleet->tombstones[id] = *tombstone;
    } else {
      fleet->tombstones.erase(id);
    }
  }
  if (change.globals) {
    fleet->globals = *change.globals;
    ++next.globals_revision;
  }
  if (change.cluster) fleet->cluster = *change.cluster;
  if (change.isolated_since) fleet->isolated_since = *change.isolated_since;
  for (const auto& [id, job] : change.jobs) next.jobs[id] = std::make_shared<job::Job>(job);
  for (const std::string& id : change.removed_jobs) next.jobs.erase(id);
  for (const auto& [name, value] : change.secrets) {
    if (value) {
      next.secrets[name] = *value;
      fleet->secret_digests[name] = secret_digest(*value);
    } else {
      next.secrets.erase(name);
      fleet->secret_digests.erase(name);
    }
  }
  for (const auto& [id, token] : change.tokens) {
    if (token) {
      next.tokens[id] = *token;
    } else {
      next.tokens.erase(id);
    }
  }
  for (const auto& [id, plan] : change.plans) {
    if (plan) {
      next.plans[id] = std::make_shared<StoredPlan>(*plan);
    } else {
      next.plans.erase(id);
    }
  }
  for (const auto& [id, token] : change.join_tokens) {
    if (token) {
      next.join_tokens[id] = *token;
    } else {
      next.join_tokens.erase(id);
    }
  }
  apply(change.departed, next.departed);
  for (const uint64_t number : change.forgotten_revisions) next.revisions.erase(number);
  if (change.revision)
    next.revisions[change.revision->number] = std::make_shared<Revision>(*change.revision);
  add_history(next.history, change.history, change.removed_nodes);
  next.fleet = std::move(fleet);
  return next;
}

}  // namespace clusterctl::controller
