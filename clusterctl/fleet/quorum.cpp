#include "fleet/quorum.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

std::string members(int n) {
  return n == 1 ? "1 member" : fmt::format("{} members", n);
}

std::string state(const StepCase& c) {
  std::string out = fmt::format("{} has {}, {} of them {}", c.service, members(c.count.total),
                                c.count.reachable, c.count.reachable == 1 ? "answers" : "answer");
  if (!c.missing.empty()) out += fmt::format(" (not {})", join(c.missing, ", "));
  if (!c.in_maintenance.empty()) {
    out += fmt::format(", and {} {} in maintenance", join(c.in_maintenance, ", "),
                       c.in_maintenance.size() == 1 ? "is" : "are");
  }
  if (!c.along.empty()) out += fmt::format(", and {} would be down too", join(c.along, ", "));
  return out;
}

// How to get back to a healthy set of members. The view may be older than what the operator did
// since: verify renews it.
std::string repair(const StepCase& c) {
  if (!c.in_maintenance.empty())
    return fmt::format("`clusterctl node maintenance exit {}` first", join(c.in_maintenance, " "));
  if (!c.along.empty()) return "one after the other";
  const auto known = std::find_if(c.missing.begin(), c.missing.end(), is_name);
  if (known == c.missing.end())
    return "`clusterctl node verify` looks again, `clusterctl status` shows the members";
  return fmt::format(
      "bring {0} back and run `clusterctl node verify {0}`, or take it out: `clusterctl node "
      "decommission {0} "
      "--force --i-have-powered-it-off`",
      *known);
}

Problem problem(const StepCase& c, std::string what, std::string hint) {
  return Problem{"quorum", fmt::format("{}; {}", std::move(what), state(c)), std::move(hint),
                 c.node};
}

std::optional<Problem> lost_already(const StepCase& c, std::string_view verb) {
  if (c.count.reachable >= majority(c.count.total)) return std::nullopt;
  return problem(c,
                 fmt::format("{} cannot be {}: {} has lost its majority, {} must answer", c.node,
                             verb, c.service, majority(c.count.total)),
                 "bring members back first, then `clusterctl node verify` looks again");
}

std::optional<Problem> check_add(const StepCase& c) {
  if (auto p = lost_already(c, "added")) return p;
  if (c.sure() == c.count.total || c.force) return std::nullopt;
  return problem(c,
                 fmt::format("{} should not be added while a member of {} is {}", c.node, c.service,
                             c.count.reachable == c.count.total ? "in maintenance" : "missing"),
                 repair(c) + "; or add it all the same with --force");
}

std::optional<Problem> check_remove(const StepCase& c) {
  const int total = c.count.total, reachable = c.sure();
  if (total <= 1) {
    if (!c.others_stay || c.force) return std::nullopt;
    return problem(
        c,
        fmt::format("{} is the last member of {} and other nodes still need it", c.node, c.service),
        "name all commissioned nodes in one request, or commission another manager first");
  }
  if (auto p = lost_already(c, "removed")) return p;
  if (reachable - 1 >= majority(total - 1)) return std::nullopt;
  return problem(
      c,
      fmt::format("without {} only {} of {} of {} would answer, {} must", c.node,
                  std::max(0, reachable - 1), members(total - 1), c.service, majority(total - 1)),
      repair(c));
}

std::optional<Problem> check_disrupt(const StepCase& c) {
  if (c.count.total <= 2) {
    if (c.allow_outage || c.count.total == 0) return std::nullopt;
    return problem(c,
                   fmt::format("{} stops while {} is worked on: {} cannot spare one", c.service,
                               c.node, members(c.count.total)),
                   "three managers can spare one; or accept it with --allow-outage");
  }
  if (c.sure() - 1 >= majority(c.count.total)) return std::nullopt;
  return problem(
      c,
      fmt::format("while {} is down only {} of {} would answer, {} must", c.node,
                  std::max(0, c.sure() - 1), members(c.count.total), majority(c.count.total)),
      repair(c));
}

}  // namespace

std::optional<Problem> check_step(const StepCase& c) {
  switch (c.step) {
    case Step::kFirst:
      if (c.count.total == 0) return std::nullopt;
      return problem(c, fmt::format("{} cannot begin a cluster: there is one", c.node),
                     "add it as a further manager");
    case Step::kAdd:
      return check_add(c);
    case Step::kRemove:
      return check_remove(c);
    case Step::kRemoveDead:
      return lost_already(c, "removed");
    case Step::kDisrupt:
      return check_disrupt(c);
    case Step::kFree:
    case Step::kEverything:
      return std::nullopt;
  }
  return std::nullopt;
}

Count after(Step step, Count c) {
  switch (step) {
    case Step::kFirst:
    case Step::kAdd:
      return {c.total + 1, c.reachable + 1};
    case Step::kRemove:
      return {std::max(0, c.total - 1), std::max(0, c.reachable - 1)};
    case Step::kRemoveDead:
      return {std::max(0, c.total - 1), std::min(c.reachable, std::max(0, c.total - 1))};
    case Step::kDisrupt:
      return {c.total, std::max(0, c.reachable - 1)};
    case Step::kFree:
      return c;
    case Step::kEverything:
      return {0, 0};
  }
  return c;
}

}  // namespace clusterctl::fleet
