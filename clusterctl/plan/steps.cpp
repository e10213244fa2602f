#include "plan/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/words.h"
#include "plan/drift.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;
using fleet::Node;
using fleet::NodeSpec;
using fleet::Role;

// The order of the steps: what adds capacity first, what takes it away last.
enum Rank { kCommission, kPromote, kUpdate, kActivate, kPause, kDrain, kDemote, kDecommission };

// Kinds that know a field of kStepOptions; timeouts belong to all.
const std::map<std::string, std::set<std::string>>& option_kinds() {
  static const std::map<std::string, std::set<std::string>> kinds{
      {"max_unavailable", {"update", "drain"}},
      {"controller_host", {"commission"}},
      {"max_failures", {"update"}},
      {"drain", {"update"}},
      {"deadline", {"update", "drain"}},
      {"allow_outage", {"commission", "decommission", "update", "promote", "demote"}},
      {"force", {"commission"}},
      {"level", {"decommission"}},
      {"keep_on_failure", {"commission", "update", "drain", "activate"}},
  };
  return kinds;
}

class Steps {
 public:
  Steps(const Surroundings& around, const Wanted& wanted, Difference& out,
        fleet::Problems& problems)
      : around_(around), wanted_(wanted), out_(out), problems_(problems) {
    global_secrets_ = !wanted.secrets.empty();
  }

  void add(const Target& t) {
    const auto it = around_.snapshot.nodes.find(t.id);
    const Node& node = it == around_.snapshot.nodes.end() ? out_.after.nodes.at(t.id) : it->second;
    if (t.leaves) return want(kDecommission, node, {{"kind", "decommission"}}, true);
    if (!is_commissioned(node)) return fresh(node, t.spec);
    if (t.spec.acceptance != node.spec.acceptance) {
      return problem(Code::kConflict, "needs_job", node.name,
                     "its acceptance cannot be changed while it is commissioned",
                     fmt::format("run `clusterctl node decommission {}`", node.name));
    }
    const bool out_of_service = t.spec.allocation != fleet::Allocation::kInService;
    if (out_of_service && (t.spec.allocation != node.spec.allocation ||
                           node.status.lifecycle == Lifecycle::kCancelled))
      return want(kDecommission, node, {{"kind", "decommission"}});
    if (node.status.lifecycle == Lifecycle::kProvisioning) return fresh(node, t.spec);
    if (node.status.lifecycle == Lifecycle::kCancelled) {
      return warn("unfinished", node, "its removal was begun and has not ended well",
                  fmt::format("`clusterctl node decommission {}`", node.name));
    }
    serving(node, t);
  }

  void make() {
    for (auto& [key, group] : groups_) {
      Json body = group.body;
      body["nodes"] = group.names;
      add_options(body);
      auto request = parse_request(body);
      if (!request) {
        cannot(group, body, request.error());
        continue;
      }
      auto plan = make_plan(out_.after, around_.catalog, *request);
      if (!plan) {
        problems_.add(plan.error());
        continue;
      }
      for (const Problem& w : plan->warnings) out_.warnings.push_back(w);
      Step step{pinned(*request, *plan, out_.after), std::move(*plan), group.removes};
      out_.steps.push_back(std::move(step));
    }
  }

 private:
  struct Group {
    Json body;
    std::vector<std::string> names;
    bool removes = false;
  };

  void fresh(const Node& node, const NodeSpec& spec) {
    if (spec.allocation != fleet::Allocation::kInService ||
        spec.acceptance != fleet::Acceptance::kAccepted)
      return;
    if (spec.host_group.empty()) {
      return warn("no_group", node, "has no host group and is not commissioned",
                  "put it into one of: " + join(around_.catalog.host_group_names(), ", "));
    }
    want(kCommission, node, {{"kind", "commission"}});
  }

  void serving(const Node& node, const Target& t) {
    const bool regroups =
        t.spec.host_group != node.spec.host_group || t.spec.capabilities != node.spec.capabilities;
    if (regroups) regroup(node, t.spec);
    if (t.spec.availability != node.spec.availability) reschedule(node, t.spec.availability);
    if (!regroups && outdated(node, t)) update(node);
  }

  // Through the kind of work that makes it what it shall be.
  void regroup(const Node& node, const NodeSpec& spec) {
    const auto role = [&](const NodeSpec& s) {
      return around_.catalog.role(s.host_group,
                                  around_.catalog.capabilities_for(s.host_group, s.capabilities));
    };
    const Role from = role(node.spec), to = role(spec);
    Json body{{"kind", from == to ? "update" : to == Role::kManager ? "promote" : "demote"}};
    body["host_group"] = spec.host_group;
    if (!spec.capabilities.empty()) {
      body["capabilities"] = spec.capabilities;
    } else if (spec.host_group == node.spec.host_group) {  // back to those of the group
      body["capabilities"] = around_.catalog.capabilities_for(spec.host_group, {});
    }
    want(from == to ? kUpdate : to == Role::kManager ? kPromote : kDemote, node, std::move(body));
  }

  void reschedule(const Node& node, Availability to) {
    static constexpr const char* kKind[] = {"activate", "pause", "drain"};
    static constexpr Rank kRank[] = {kActivate, kPause, kDrain};
    const auto i = static_cast<size_t>(to);
    want(kRank[i], node, {{"kind", kKind[i]}});
  }

  // What was verified there is not what is wanted, or the last attempt to bring it there failed.
  bool outdated(const Node& node, const Target& t) const {
    if (!node.status.applied || t.new_secret || global_secrets_) return true;
    return !drift_of(out_.after, around_.catalog, out_.after.nodes.at(node.id)).empty() ||
           (node.status.lifecycle == Lifecycle::kMaintenance &&
            fleet::has_condition(node.status, fleet::condition::kFailed));
  }

  void update(const Node& node) {
    if (!node.status.applied) {
      return warn("unfinished", node, "carries nothing that was verified",
                  fmt::format("`clusterctl node decommission {}`", node.name));
    }
    if (node.status.presence == fleet::Presence::kDisappeared) {
      return warn("left_out", node, "does not answer and is not updated",
                  fmt::format("`clusterctl node check {}`, then apply again", node.name));
    }
    want(kUpdate, node, {{"kind", "update"}});
  }

  void want(Rank rank, const Node& node, Json body, bool removes = false) {
    if (const auto it = around_.busy.find(node.id); it != around_.busy.end()) {
      return warn("busy", node,
                  fmt::format("job {} ({}) works on it: nothing further is planned for it",
                              it->second.job, it->second.kind),
                  fmt::format("clusterctl job wait {}, then apply again", it->second.job));
    }
    if (node.status.maintenance && rank != kDecommission) {
      return warn(
          "left_out", node, "is in maintenance and left out",
          fmt::format("`clusterctl node maintenance exit {}`, then apply again", node.name));
    }
    Group& group = groups_[{rank, dump_json(body) + (removes ? "-" : "")}];
    group.body = std::move(body);
    group.names.push_back(node.name);
    group.removes = removes;
  }

  void add_options(Json& body) const {
    const std::string kind = body["kind"];
    for (const auto& [key, value] : wanted_.options.items()) {
      const auto it = option_kinds().find(key);
      if (it == option_kinds().end() || it->second.count(kind)) body[key] = value;
    }
  }

  // There is no kind of work for this change (yet).
  void cannot(const Group& group, const Json& body, const Error& error) {
    const bool options =
        error.problems.empty() ||
        std::none_of(error.problems.begin(), error.problems.end(), [](const Problem& p) {
          return p.code == "unknown_kind" || p.code == "not_for_kind";
        });
    if (options) return problems_.add(error);
    for (const std::string& name : group.names) {
      problem(Code::kConflict, "needs_job", name,
              fmt::format("is commissioned, and {} cannot make it what the document says",
                          body["kind"].get<std::string>()),
              fmt::format("`clusterctl node decommission {}`, then apply again", name));
    }
  }

  void warn(std::string code, const Node& node, std::string message, std::string hint) {
    out_.warnings.push_back({std::move(code), std::move(message), std::move(hint), node.name});
  }
  void problem(Code code, std::string reason, const std::string& node, std::string message,
               std::string hint) {
    problems_.add(code, Problem{std::move(reason), std::move(message), std::move(hint), node});
  }

  const Surroundings& around_;
  const Wanted& wanted_;
  Difference& out_;
  fleet::Problems& problems_;
  bool global_secrets_ = false;
  std::map<std::pair<Rank, std::string>, Group> groups_;
};

}  // namespace

void add_steps(const Surroundings& around, const Wanted& wanted, const std::vector<Target>& targets,
               Difference& out, fleet::Problems& problems) {
  Steps steps(around, wanted, out, problems);
  for (const Target& t : targets) steps.add(t);
  steps.make();
}

}  // namespace clusterctl::plan
