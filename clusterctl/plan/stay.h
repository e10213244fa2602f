// What maintenance and reboot have in common: which nodes are meant, what speaks against taking
// them out of service, and the stages that do it and undo it. Pure; belongs to the planning call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/context.h"

namespace clusterctl::plan {

// Nodes of the request: those named, else those of its selector or host group in state `in`; in the
// order of work: managers first, then by name or as named.
NodeList stay_targets(const Context& context, const std::set<fleet::Lifecycle>& in,
                      fleet::Problems& problems, std::vector<Problem>& warnings);

// A way to the scheduler: a manager that answers, or the node itself when it is the only one.
void check_way(const Context& context, const NodeList& targets, fleet::Problems& problems);

// Taking nodes out of service.
class Leaving {
 public:
  // `targets`: managers first.
  Leaving(const Context& context, const NodeList& targets);

  const NodeList& managers() const { return managers_; }
  const NodeList& others() const { return others_; }

  // Whether each can leave: lifecycle, what it carries.
  void check_states(fleet::Problems& problems) const;
  // What would break. Two levels: `force` steps over those of the first, which become warnings;
  // only `allow_outage` over a majority that stops. `at_once`: all of them are away at the same
  // time; else one batch after the other.
  void check_dangers(bool at_once, fleet::Problems& problems, std::vector<Problem>& warnings,
                     std::map<std::string, QuorumView>& quorum) const;

  // Batches of one manager each, then of workers inside the budget; what is away already, and what
  // does not answer, in batches of its own.
  std::vector<NodeList> batches() const;
  // Out of use already: drained, in maintenance, or it does not answer.
  bool is_away(const Node& node) const { return workers_.unavailable.count(node.id) != 0; }

  // Nothing else could take over what they run.
  bool no_place() const { return !context_.others_take_work(ids_of(all_)); }
  static bool is_lost(const Node& node) {
    return node.status.presence == fleet::Presence::kDisappeared;
  }
  // Those of `batch` that have something to hand over and can be asked to.
  NodeList handing_over(const NodeList& batch) const;
  // Sets `to` in the scheduler for `batch`.
  Stage availability(const std::string& name, const NodeList& batch, fleet::Availability to) const;
  // An observation by all managers.
  Stage observe() const;

 private:
  Budget workers_budget() const;
  void danger(bool stepped_over, Problem problem, fleet::Problems& problems,
              std::vector<Problem>& warnings) const;

  const Context& context_;
  const WorkerState workers_;
  NodeList all_, managers_, others_;
};

// A plan of this kind for these targets, without stages yet. `doing`: "reboot".
Plan stay_plan(const Context& context, const NodeList& targets, const std::string& doing);

}  // namespace clusterctl::plan
