// Commands that are given several names do all or nothing, as far as one can know beforehand: every
// name is looked up before the first is changed, and what still goes wrong in the middle says what
// was done by then. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"

namespace clusterctl::cli {

// What each name stands for, in their order, each thing once. An Error that lists every name that
// stands for nothing. `find` is asked for each.
Result<std::vector<Json>> look_up_all(const std::vector<std::string>& names,
                                      const std::function<Result<Json>(const std::string&)>& find);

// The nodes of these names.
Result<std::vector<Json>> look_up_nodes(Session& session, const std::vector<std::string>& names);

// Keeps account of one request after the other.
class Several {
 public:
  explicit Several(Session& session) : session_(session) {}

  void did(std::string name) { done_.push_back(std::move(name)); }
  // The first is the command's result, the others are printed.
  void refused(const Error& error);
  // The exit code, or the first refusal with what was done all the same.
  Result<int> end();

 private:
  Session& session_;
  std::vector<std::string> done_;
  std::optional<Error> first_;
};

}  // namespace clusterctl::cli
