#include "cli/each_node.h"

#include <fmt/format.h>

#include "cli/text.h"

namespace clusterctl::cli {

Result<int> EachNode::run(const std::vector<NodeTarget>& targets, const std::string& done) {
  session_.requested_nodes = targets.size();
  Json answers = Json::array();
  for (const NodeTarget& target : targets) {
    std::map<std::string, std::string> headers;
    if (!target.version.empty()) headers["If-Match"] = fmt::format("\"{}\"", target.version);
    auto node = session_.call(method_, "/v1/nodes/" + client::escape(target.name) + action_,
                              target.body.value_or(body_), headers);
    if (!node) {
      refused(node.error());
      continue;
    }
    if (!session_.structured()) {
      session_.line(session_.names_only() ? text(*node, "name")
                                          : fmt::format("node {} {}", text(*node, "name"), done));
    }
    answers.push_back(std::move(*node));
  }
  if (session_.structured() && !answers.empty())
    session_.data(answers.size() == 1 ? answers[0] : answers);
  if (first_) return fail(std::move(*first_));
  return kExitOk;
}

void EachNode::refused(const Error& error) {
  if (!first_) {
    first_ = error;
  } else {
    print_error(session_.terminal, error, 0, session_.color);
  }
}

}  // namespace clusterctl::cli
