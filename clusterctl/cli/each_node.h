// The same request for each of several nodes. All are tried; the first refusal is the result. One
// thread.
#pragma once

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

class EachNode {
 public:
  EachNode(Session& session, std::string method, std::string action, Json body)
      : session_(session),
        method_(std::move(method)),
        action_(std::move(action)),
        body_(std::move(body)) {}

  // `done`: what a node is now, "labelled".
  Result<int> run(const std::vector<NodeTarget>& targets, const std::string& done);

 private:
  void refused(const Error& error);

  Session& session_;
  std::string method_, action_;
  Json body_;
  std::optional<Error> first_;
};

}  // namespace clusterctl::cli
