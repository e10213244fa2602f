#include "job/locks.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace clusterctl::job {
namespace {

// The nodes that runs of this job touch or read without being its targets.
std::set<std::string> helpers(const Job& job) {
  std::set<std::string> out;
  for (const StageStatus& stage : job.stages) {
    // What is removed for good is told to one survivor; the other managers are only data.
    if (!urgent(job)) out.insert(stage.def.peers.begin(), stage.def.peers.end());
    out.insert(stage.def.nodes.begin(), stage.def.nodes.end());
  }
  for (const NodeOutcome& n : job.nodes) out.erase(n.node);
  return out;
}

// Who holds what. The first to claim a lock is the one that is named.
class Table {
 public:
  void claim(const Job& job) {
    for (const NodeOutcome& n : job.nodes) {
      Holders& h = nodes_[n.node];
      set(read_only(job) ? h.shared : h.exclusive, job);
    }
    for (const std::string& node : helpers(job)) set(nodes_[node].shared, job);
    if (disrupts_managers(job)) set(managers_, job);
  }

  std::optional<Conflict> check(const Job& job) const {
    for (const NodeOutcome& n : job.nodes) {
      const bool alone = !read_only(job);
      if (const Job* h = holder(n.node, alone && !urgent(job)))
        return Conflict{h->id, n.node, "node"};
    }
    for (const std::string& node : helpers(job)) {
      if (const Job* h = holder(node, false)) return Conflict{h->id, node, "node"};
    }
    if (managers_ && disrupts_managers(job)) return Conflict{managers_->id, "", "managers"};
    return std::nullopt;
  }

 private:
  struct Holders {
    const Job* exclusive = nullptr;
    const Job* shared = nullptr;
  };

  static void set(const Job*& place, const Job& job) {
    if (!place) place = &job;
  }
  const Job* holder(const std::string& node, bool also_shared) const {
    const auto it = nodes_.find(node);
    if (it == nodes_.end()) return nullptr;
    if (it->second.exclusive) return it->second.exclusive;
    return also_shared ? it->second.shared : nullptr;
  }

  std::unordered_map<std::string, Holders> nodes_;
  const Job* managers_ = nullptr;
};

}  // namespace

bool read_only(const Job& job) {
  return job.kind == "check" || job.kind == "verify" || job.kind == "observe";
}

// The availability of a node in the scheduler does not hinder what goes on through it.
static bool leaves_services_alone(const Job& job) {
  return read_only(job) || job.kind == "drain" || job.kind == "activate";
}

bool disrupts_managers(const Job& job) {
  if (leaves_services_alone(job)) return false;
  return std::any_of(job.roles.begin(), job.roles.end(),
                     [](const auto& entry) { return entry.second == fleet::Role::kManager; });
}

bool urgent(const Job& job) {
  return job.kind == "decommission" && job.request.force && job.request.powered_off;
}

std::vector<std::optional<Conflict>> conflicts(const std::vector<const Job*>& jobs) {
  std::vector<std::optional<Conflict>> out(jobs.size());
  Table begun;
  for (const Job* job : jobs) {
    if (job->state != State::kQueued && !is_final(job->state)) begun.claim(*job);
  }
  Table all = begun;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i]->state != State::kQueued) continue;
    out[i] = (urgent(*jobs[i]) ? begun : all).check(*jobs[i]);
    all.claim(*jobs[i]);
  }
  return out;
}

}  // namespace clusterctl::job
