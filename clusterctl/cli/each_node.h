// The same change of each of several nodes: looked up and planned as a whole first, so that nothing
// is changed when one of them is refused. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"

namespace clusterctl::cli {

// One node and the version of its record that the change is made for; empty: whatever it is.
struct NodeTarget {
  std::string name;
  std::string version;
  std::optional<Json> body = std::nullopt;  // instead of the common one
};

// Nodes that exist, as targets.
Result<std::vector<NodeTarget>> named_nodes(Session& session, const std::vector<std::string>& names,
                                            const std::string& version = "");

class EachNode {
 public:
  // What a body makes of a node's spec; null: the node is removed.
  using ToSpec = std::function<Json(const Json& body)>;

  EachNode(Session& session, std::string method, std::string action, Json body, ToSpec to_spec)
      : session_(session),
        method_(std::move(method)),
        action_(std::move(action)),
        body_(std::move(body)),
        to_spec_(std::move(to_spec)) {}

  // Shows what would change; nothing is done.
  Result<int> plan(const std::vector<NodeTarget>& targets);
  // `done`: what a node is now, "labelled".
  Result<int> run(const std::vector<NodeTarget>& targets, const std::string& done);

 private:
  Json changes(const std::vector<NodeTarget>& targets) const;
  Status check(const std::vector<NodeTarget>& targets);
  Result<Json> change(const NodeTarget& target);

  Session& session_;
  std::string method_, action_;
  Json body_;
  ToSpec to_spec_;
};

}  // namespace clusterctl::cli
