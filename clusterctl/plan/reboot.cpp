// reboot: [observe] → batches of [observe] → drain → [handover → observe] → reboot → verify →
// [takeback] → restore. A node that somebody has taken into maintenance is rebooted and verified,
// and stays there.
#include <fmt/format.h>

#include <algorithm>

#include "fleet/words.h"
#include "plan/stay.h"

namespace clusterctl::plan {
namespace {

using fleet::Availability;
using fleet::Lifecycle;

bool stays_in_maintenance(const Node& node) {
  return node.status.maintenance && node.status.maintenance->kind != "reboot";
}

class Reboot {
 public:
  explicit Reboot(const Context& context)
      : context_(context),
        targets_(stay_targets(context, {Lifecycle::kAllocated, Lifecycle::kMaintenance}, problems_,
                              warnings_)),
        leaving_(context, targets_) {}

  Result<Plan> make() {
    leaving_.check_states(problems_);
    if (problems_.empty()) {
      check_way(context_, targets_, problems_);
      check_reachable();
      leaving_.check_dangers(false, problems_, warnings_, quorum_);
    }
    const auto batches = cut();
    if (batches.size() > kMaxBatches) {
      problems_.add(Code::kInvalid,
                    Problem{"too_many_batches",
                            fmt::format("{} batches are more than the {} that one job may have",
                                        batches.size(), kMaxBatches),
                            "larger batches with --max-unavailable, or fewer nodes", ""});
    }
    if (!problems_.empty()) return problems_.refuse("nothing is rebooted");
    plan_ = stay_plan(context_, targets_, "reboot");
    plan_.warnings = std::move(warnings_);
    plan_.quorum = std::move(quorum_);
    bool seen = !leaving_.managers().empty();  // the first batch follows an observation
    if (seen) plan_.stages.push_back(leaving_.observe());
    for (const NodeList& batch : batches) {
      ++number_;
      const bool manager = plan_.roles[batch[0]->id] == fleet::Role::kManager;
      if (manager && !seen) add(leaving_.observe());
      seen = false;
      add_batch(batch);
    }
    return std::move(plan_);
  }

 private:
  // Unlike maintenance, a reboot needs the node itself.
  void check_reachable() {
    for (const Node* node : targets_) {
      if (!Leaving::is_lost(*node)) continue;
      problems_.add(
          Code::kConflict,
          Problem{"unreachable", fmt::format("{} does not answer", node->name),
                  fmt::format("power-cycle it, then `clusterctl node verify {}`", node->name),
                  node->name});
    }
  }

  // Batches as they leave, those that stay in maintenance apart.
  std::vector<NodeList> cut() const {
    std::vector<NodeList> out;
    for (const NodeList& batch : leaving_.batches()) {
      NodeList mine, theirs;
      for (const Node* node : batch) (stays_in_maintenance(*node) ? theirs : mine).push_back(node);
      for (NodeList* part : {&theirs, &mine}) {
        if (!part->empty()) out.push_back(std::move(*part));
      }
    }
    return out;
  }

  void add(Stage stage) {
    stage.batch = number_;
    plan_.stages.push_back(std::move(stage));
  }

  Stage on_nodes(const std::string& name, const NodeList& batch) const {
    const NodeList managers = context_.managers();
    const Json vars = managers.empty()
                          ? Json::object()
                          : effective_vars(context_.snapshot(), context_.catalog(), *managers[0],
                                           managers[0]->status.applied->host_group);
    return context_.stage(name, batch,
                          context_.run_vars(managers, context_.peer(ids_of(batch)), vars));
  }

  void add_batch(const NodeList& batch) {
    const bool stays = stays_in_maintenance(*batch[0]);
    const NodeList handing = stays ? NodeList{} : leaving_.handing_over(batch);
    if (!stays) add(leaving_.availability("drain", batch, Availability::kDrain));
    if (!handing.empty()) {
      add(handover_stage(context_.snapshot(), context_.catalog(), "handover", ids_of(handing),
                         false));
      add(leaving_.observe());
    }
    add(on_nodes("reboot", batch));
    add(on_nodes("verify", batch));
    if (!handing.empty()) {
      Stage back = handover_stage(context_.snapshot(), context_.catalog(), "takeback",
                                  ids_of(handing), true);
      back.restores = true;
      add(std::move(back));
    }
    if (stays) return;
    std::map<std::string, Availability> before;
    for (const Node* node : batch) before[node->id] = availability_before(*node);
    Stage restore = availability_stage(context_.snapshot(), context_.catalog(), "restore", before);
    restore.vars.drain_deadline = 0;
    restore.restores = true;
    add(std::move(restore));
  }

  const Context& context_;
  fleet::Problems problems_;
  std::vector<Problem> warnings_;
  std::map<std::string, QuorumView> quorum_;
  NodeList targets_;
  Leaving leaving_;
  Plan plan_;
  int number_ = 0;
};

}  // namespace

Result<Plan> plan_reboot(const Context& context) {
  return Reboot(context).make();
}

}  // namespace clusterctl::plan
