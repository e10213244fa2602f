#include "job/locks.h"

#include <algorithm>
#include <array>
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

// What a job does with a node, and which two of these do not go together.
enum Use { kHelps, kLooks, kSchedules, kChanges, kUses };
constexpr bool kClash[kUses][kUses] = {
    // helps  looks  schedules  changes
    {false, false, false, true},  // helps: a run reads it or delegates to it
    {false, false, true, true},   // looks: check, verify
    {false, true, true, true},  // schedules: its availability does not hinder what goes through it
    {true, true, true, true},   // changes
};

Use use_of_target(const Job& job) {
  if (read_only(job)) return kLooks;
  return plan::availability_of(job.kind) ? kSchedules : kChanges;
}

// Who holds what. The first to claim a lock is the one that is named.
class Table {
 public:
  void claim(const Job& job) {
    const Use use = use_of_target(job);
    for (const NodeOutcome& n : job.nodes) set(nodes_[n.node][use], job);
    for (const std::string& node : helpers(job)) set(nodes_[node][kHelps], job);
    if (disrupts_managers(job)) set(managers_, job);
  }

  std::optional<Conflict> check(const Job& job) const {
    const Use use = use_of_target(job);
    // The removal of what is gone for good waits for nobody who only looks or goes through it.
    const Use least = urgent(job) ? kSchedules : kHelps;
    for (const NodeOutcome& n : job.nodes) {
      if (const Job* h = holder(n.node, use, least)) return Conflict{h->id, n.node, "node"};
    }
    for (const std::string& node : helpers(job)) {
      if (const Job* h = holder(node, kHelps, kHelps)) return Conflict{h->id, node, "node"};
    }
    if (managers_ && disrupts_managers(job)) return Conflict{managers_->id, "", "managers"};
    return std::nullopt;
  }

 private:
  static void set(const Job*& place, const Job& job) {
    if (!place) place = &job;
  }
  const Job* holder(const std::string& node, Use use, Use least) const {
    const auto it = nodes_.find(node);
    if (it == nodes_.end()) return nullptr;
    for (int other = kChanges; other >= least; --other) {
      if (it->second[other] && kClash[use][other]) return it->second[other];
    }
    return nullptr;
  }

  std::unordered_map<std::string, std::array<const Job*, kUses>> nodes_;
  const Job* managers_ = nullptr;
};

}  // namespace

bool read_only(const Job& job) {
  return job.kind == "check" || job.kind == "verify" || job.kind == "observe";
}

bool disrupts_managers(const Job& job) {
  if (use_of_target(job) != kChanges) return false;
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
    const auto before = std::find_if(jobs.begin(), jobs.end(), [&](const Job* j) {
      return !jobs[i]->chain.after.empty() && j->id == jobs[i]->chain.after;
    });
    if (before != jobs.end()) {  // it holds nothing yet: others may go first
      out[i] = Conflict{(*before)->id, "", "plan"};
      continue;
    }
    out[i] = (urgent(*jobs[i]) ? begun : all).check(*jobs[i]);
    all.claim(*jobs[i]);
  }
  return out;
}

}  // namespace clusterctl::job
