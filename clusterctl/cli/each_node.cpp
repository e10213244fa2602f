#include "cli/each_node.h"

#include <fmt/format.h>

#include "cli/changes_plan.h"
#include "cli/several.h"
#include "cli/text.h"

namespace clusterctl::cli {

Result<std::vector<NodeTarget>> named_nodes(Session& session, const std::vector<std::string>& names,
                                            const std::string& version) {
  session.requested_nodes = names.size();
  auto nodes = look_up_nodes(session, names);
  if (!nodes) return fail(nodes.error());
  std::vector<NodeTarget> out;
  for (const Json& node : *nodes) out.push_back({text(node, "name"), version});
  return out;
}

Json EachNode::changes(const std::vector<NodeTarget>& targets) const {
  Json out = Json::array();
  for (const NodeTarget& target : targets) {
    if (!to_spec_) {
      out.push_back(target.name);
    } else {
      out.push_back({{"name", target.name}, {"spec", to_spec_(target.body.value_or(body_))}});
    }
  }
  return {{to_spec_ ? "nodes" : "remove", std::move(out)}};
}

Result<int> EachNode::plan(const std::vector<NodeTarget>& targets) {
  session_.requested_nodes = targets.size();
  return show_changes(session_, changes(targets));
}

// Of one node the request itself says what is wrong.
Status EachNode::check(const std::vector<NodeTarget>& targets) {
  if (targets.size() < 2) return {};
  auto plan = plan_changes(session_, changes(targets));
  if (plan) return {};
  return fail(plan.error());
}

Result<Json> EachNode::change(const NodeTarget& target) {
  std::map<std::string, std::string> headers;
  if (!target.version.empty()) headers["If-Match"] = fmt::format("\"{}\"", target.version);
  return session_.call(method_, "/v1/nodes/" + client::escape(target.name) + action_,
                       target.body.value_or(body_), headers);
}

Result<int> EachNode::run(const std::vector<NodeTarget>& targets, const std::string& done) {
  session_.requested_nodes = targets.size();
  if (auto ok = check(targets); !ok) return fail(ok.error());
  Json answers = Json::array();
  Several several(session_);
  for (const NodeTarget& target : targets) {
    auto node = change(target);
    if (!node) {
      several.refused(node.error());
      continue;
    }
    const std::string name = node->is_null() ? clean(target.name) : text(*node, "name");
    several.did(name);
    if (!session_.structured())
      session_.line(session_.names_only() ? name : fmt::format("node {} {}", name, done));
    if (!node->is_null()) answers.push_back(std::move(*node));
  }
  if (session_.structured() && !answers.empty())
    session_.data(answers.size() == 1 ? answers[0] : answers);
  return several.end();
}

}  // namespace clusterctl::cli
