#include "job/locks.h"

#include <algorithm>
#include <set>

namespace clusterctl::job {
namespace {

std::set<std::string> targets(const Job& job) {
  std::set<std::string> out;
  for (const NodeOutcome& n : job.nodes) out.insert(n.node);
  return out;
}

std::set<std::string> peers(const Job& job) {
  std::set<std::string> out;
  for (const StageStatus& stage : job.stages)
    out.insert(stage.def.peers.begin(), stage.def.peers.end());
  return out;
}

std::optional<std::string> common(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto it =
      std::find_if(a.begin(), a.end(), [&](const std::string& id) { return b.count(id) != 0; });
  return it == a.end() ? std::nullopt : std::optional(*it);
}

// Read-only work holds no exclusive lock against other read-only work.
bool read_only(const Job& job) {
  return job.kind == "check" || job.kind == "verify" || job.kind == "observe";
}

// The availability of a node in the scheduler does not hinder what goes on through it.
bool leaves_services_alone(const Job& job) {
  return read_only(job) || job.kind == "drain" || job.kind == "activate";
}

}  // namespace

bool disrupts_managers(const Job& job) {
  if (leaves_services_alone(job)) return false;
  return std::any_of(job.roles.begin(), job.roles.end(),
                     [](const auto& entry) { return entry.second == fleet::Role::kManager; });
}

std::optional<Conflict> conflict(const Job& holder, const Job& waiting) {
  if (read_only(holder) && read_only(waiting)) return std::nullopt;
  const auto a = targets(holder), b = targets(waiting);
  if (auto node = common(a, b)) return Conflict{holder.id, *node};
  if (!leaves_services_alone(holder)) {
    if (auto node = common(a, peers(waiting))) return Conflict{holder.id, *node};
  }
  if (!leaves_services_alone(waiting)) {
    if (auto node = common(peers(holder), b)) return Conflict{holder.id, *node};
  }
  if (disrupts_managers(holder) && disrupts_managers(waiting)) return Conflict{holder.id, ""};
  return std::nullopt;
}

std::optional<Conflict> blocked_by(const std::vector<const Job*>& jobs, size_t index) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const bool in_the_way =
        jobs[i]->state == State::kRunning || jobs[i]->state == State::kPaused || i < index;
    if (i == index || !in_the_way || is_final(jobs[i]->state)) continue;
    if (auto c = conflict(*jobs[i], *jobs[index])) return c;
  }
  return std::nullopt;
}

}  // namespace clusterctl::job
