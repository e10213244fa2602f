#include "fleet/problems.h"

#include <fmt/format.h>

#include <algorithm>

namespace clusterctl::fleet {
namespace {

// Smaller is graver.
int gravity(Code code) {
  switch (code) {
    case Code::kInternal:
      return 0;
    case Code::kInvalid:
      return 1;
    case Code::kTooLarge:
      return 2;
    case Code::kNotFound:
      return 3;
    case Code::kConflict:
      return 4;
    case Code::kRefused:
      return 5;
    default:
      return 6;
  }
}

}  // namespace

void Problems::add(Code code, Problem problem) {
  if (std::find(problems_.begin(), problems_.end(), problem) != problems_.end()) return;
  problems_.push_back(std::move(problem));
  codes_.push_back(code);
}

void Problems::add(const Error& error, const std::string& node) {
  if (error.problems.empty()) {
    add(error.code, Problem{error.reason, error.message, error.hint, node});
    return;
  }
  for (Problem p : error.problems) {
    if (p.node.empty()) p.node = node;
    add(error.code, std::move(p));
  }
}

tl::unexpected<Error> Problems::refuse(const std::string& what) const {
  const auto worst = std::min_element(codes_.begin(), codes_.end(),
                                      [](Code a, Code b) { return gravity(a) < gravity(b); });
  const Problem& first = problems_[static_cast<size_t>(worst - codes_.begin())];
  Error error{*worst, first.code, first.message, first.hint, problems_};
  if (!first.node.empty() && first.message.find(first.node) == std::string::npos) {
    error.message = first.node + ": " + error.message;
  }
  if (problems_.size() > 1) {
    error.message =
        fmt::format("{}: {} problems, the first: {}", what, problems_.size(), error.message);
  }
  return fail(std::move(error));
}

}  // namespace clusterctl::fleet
