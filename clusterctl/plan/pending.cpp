#include "plan/pending.h"

#include <fmt/format.h>

#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::plan {

bool waits_for_service(const fleet::Node& node) {
  return !is_commissioned(node) && node.spec.acceptance == fleet::Acceptance::kAccepted &&
         node.spec.allocation == fleet::Allocation::kInService && !node.spec.host_group.empty();
}

std::optional<std::string> why_pending(const fleet::Snapshot& snapshot,
                                       const catalog::Catalog& catalog, const fleet::Node& node) {
  if (!waits_for_service(node)) return std::nullopt;
  Request request;
  request.kind = "commission";
  request.nodes = {node.id};
  const auto plan = make_plan(snapshot, catalog, request);
  if (plan) return std::nullopt;
  const Error& error = plan.error();
  if (error.problems.empty()) return error.message;
  const std::string& first = error.problems.front().message;
  const size_t more = error.problems.size() - 1;
  return more == 0 ? first : fmt::format("{} (and {} more)", first, more);
}

std::string pending_key(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog) {
  std::string key;
  for (const auto& [id, node] : snapshot.nodes) {
    if (!is_commissioned(node) || role_of(catalog, node) != fleet::Role::kManager) continue;
    key += fmt::format("{} {} {} {};", id, word(node.status.lifecycle), word(node.status.presence),
                       node.status.applied.has_value());
    for (const auto& [name, status] : node.status.services) {
      key += fmt::format("{} {}", name, status.healthy);
      for (const fleet::Member& m : status.members)
        key += fmt::format(" {} {} {}", m.id, m.role, m.reachable);
      key += ';';
    }
  }
  return key;
}

}  // namespace clusterctl::plan
