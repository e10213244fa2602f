// Majorities: who the voting members of a quorum service are, and which step may be taken now. Pure
// arithmetic on the last observation; any thread.
//
// T = voting members by last observation whatever their lifecycle, H = those of them that answer,
// q(T) = T/2 + 1.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

constexpr int majority(int total) {
  return total / 2 + 1;
}

struct Count {
  int total = 0;
  int reachable = 0;
  // Members that may fail without losing the majority; never negative.
  int tolerates() const {
    return total == 0 || reachable < majority(total) ? 0 : reachable - majority(total);
  }
  bool operator==(const Count&) const = default;
};

// A voting member as last seen.
struct SeenMember {
  std::string node;  // id of its node record; empty: a stranger
  std::string name;
  std::string id;  // member id in the service
  bool reachable = false;
  bool leader = false;
};

struct View {
  std::string service;
  std::vector<SeenMember> members;  // sorted by name
  std::optional<Time> observed;     // empty: never observed, reckoned from applied and presence

  Count count() const;
  const SeenMember* of(std::string_view node_id) const;
  std::string leader() const;                // name, or empty
  std::vector<std::string> missing() const;  // names of members that do not answer
};

// Taken from the member list of a serving node (else of any commissioned one), one that answers
// before others, then a healthy report before others, of those the freshest. Without any list, the
// commissioned nodes for which `is_manager` (by what was applied) holds are the members. A member
// whose node has disappeared, or whose own report is newer and unhealthy, does not answer. Learners
// and workers do not vote.
View observe(const Snapshot& snapshot, const std::string& service,
             const std::function<bool(const Node&)>& is_manager);

enum class Step {
  kFirst,       // the first manager of a new cluster
  kAdd,         // a further manager
  kRemove,      // remove or demote one that answers
  kRemoveDead,  // remove one that will never answer
  kDisrupt,     // upgrade, reboot, maintenance: it stops for a while
  kFree,        // drain, pause, activate
  kEverything,  // every commissioned node in one request
};

struct StepCase {
  std::string service;
  std::string node;  // name of the node the step is about
  Step step = Step::kFree;
  Count count;  // before the step
  bool force = false;
  bool allow_outage = false;
  bool others_stay = false;          // commissioned nodes remain that are not in the request
  std::vector<std::string> missing;  // names of members that do not answer, for the message
  // Names of other members that answer and may stop at any moment: those in maintenance, and those
  // that this request stops as well. What takes a member away must be safe without them too.
  std::vector<std::string> in_maintenance, along;
  int sure() const {
    return count.reachable - static_cast<int>(in_maintenance.size() + along.size());
  }
};

// nullopt: allowed. Else a Problem "quorum" with the numbers, what would break and what to do.
std::optional<Problem> check_step(const StepCase& c);
// The count once the step is done (kDisrupt: while it lasts).
Count after(Step step, Count count);

}  // namespace clusterctl::fleet
