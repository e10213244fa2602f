// Label selectors: "k=v,k2!=v2,k3,!k4", all of which must hold. Pure, any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clusterctl::fleet {

class Selector {
 public:
  // Blank text selects everything.
  static Result<Selector> parse(std::string_view text);
  bool matches(const std::map<std::string, std::string>& labels) const;
  bool empty() const { return terms_.empty(); }

 private:
  enum class Op { kEquals, kDiffers, kPresent, kAbsent };
  struct Term {
    std::string key;
    Op op;
    std::string value;
  };
  std::vector<Term> terms_;
};

}  // namespace clusterctl::fleet
