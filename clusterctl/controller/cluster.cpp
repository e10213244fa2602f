// Settings of the cluster as a whole.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "controller/controller.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"
#include "fleet/words.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

void read_word(fleet::Problems& problems, const Json& patch, const char* key,
               const std::vector<std::string>& words, std::string& out) {
  if (!patch.contains(key)) return;
  const std::string value = problems.take(get_string(patch, key));
  if (std::find(words.begin(), words.end(), value) != words.end()) {
    out = value;
    return;
  }
  problems.add(
      Code::kInvalid,
      Problem{"unknown_word", fmt::format("{} is not a value of {}", fleet::shown(value), key),
              "one of: " + join(words, ", "), ""});
}

void read_budget(fleet::Problems& problems, const Json& patch, std::string& out) {
  const auto given = patch.find("max_unavailable");
  if (given == patch.end()) return;
  const std::string value = plain_text(*given);
  if (plan::budget(value, 100)) {
    out = value;
    return;
  }
  problems.add(
      Code::kInvalid,
      Problem{"bad_max_unavailable", fmt::format("\"max_unavailable\" is {}", fleet::shown(value)),
              "a number from 1, or \"10%\"", ""});
}

// Ids and secrets on the nodes are derived from the name.
void read_name(fleet::Problems& problems, const Json& patch, const fleet::Snapshot& fleet,
               std::string& out) {
  if (!patch.contains("name")) return;
  const std::string value = problems.take(get_string(patch, "name"));
  if (auto ok = fleet::check_word(value, "name of a cluster"); !ok) return problems.add(ok.error());
  const auto in_use = std::find_if(fleet.nodes.begin(), fleet.nodes.end(), [](const auto& entry) {
    return fleet::is_commissioned(entry.second);
  });
  if (value != out && in_use != fleet.nodes.end()) {
    problems.add(Code::kConflict,
                 Problem{"cluster_in_use",
                         fmt::format("the name cannot be changed while nodes are commissioned ({})",
                                     in_use->second.name),
                         "what runs on them is bound to it: decommission all nodes first", ""});
    return;
  }
  out = value;
}

}  // namespace

Result<fleet::Cluster> Controller::patch_cluster(const Json& patch, const IfMatch& if_match,
                                                 bool dry_run) {
  fleet::Problems problems;
  for (const auto& [key, value] : patch.items()) {
    problems.take(check_keys(Json{{key, value}},
                             {"name", "accept_policy", "max_unavailable", "drift_policy"},
                             "the cluster"));
  }
  MutexLock lock(mutex_);
  const auto snapshot = fleet();
  fleet::Cluster cluster = snapshot->cluster;
  if (auto ok = check_version("the cluster", cluster.version, if_match); !ok)
    return fail(ok.error());
  read_name(problems, patch, *snapshot, cluster.name);
  read_word(problems, patch, "accept_policy", {"always", "manual"}, cluster.accept_policy);
  read_word(problems, patch, "drift_policy", {"never", "ask", "auto"}, cluster.drift_policy);
  read_budget(problems, patch, cluster.max_unavailable);
  if (!problems.empty()) return problems.refuse("the cluster is not changed");
  if (cluster == snapshot->cluster || dry_run) return cluster;
  ++cluster.version;
  Change change;
  change.cluster = cluster;
  change.events.push_back({0, {}, "cluster.updated", "", "", cluster.name});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return cluster;
}

}  // namespace clusterctl::controller
