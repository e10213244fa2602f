// Collects every reason why something is refused, then refuses once. Passive, one thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace clusterctl::fleet {

class Problems {
 public:
  // `node`: the name of the node it concerns; empty: the request as a whole.
  void add(Code code, Problem problem);
  void add(const Error& error, const std::string& node = "");
  // The value of a Result, or its default with the problem noted.
  template <typename T>
  T take(Result<T> result, const std::string& node = "") {
    if (result) return std::move(*result);
    add(result.error(), node);
    return T{};
  }
  void take(const Status& status, const std::string& node = "") {
    if (!status) add(status.error(), node);
  }

  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& list() const { return problems_; }
  // All of them as one Error: the gravest code (form, then unknown names, then state of the fleet,
  // then placement), the message and the reason of its first problem. Must not be empty.
  tl::unexpected<Error> refuse(const std::string& what) const;

 private:
  std::vector<Problem> problems_;
  std::vector<Code> codes_;
};

}  // namespace clusterctl::fleet
