// `--filter KEY=VALUE` of lists. A filter is asked of the daemon or compared here. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/session.h"

namespace clusterctl::cli {

struct Filter {
  std::string_view key;                    // as typed
  std::string_view query;                  // the daemon's parameter; empty: compared here
  std::vector<std::string> words;          // allowed values; empty: any
  std::vector<std::string_view> member{};  // where the compared value is in a row
};

class Filters {
 public:
  // All of `given` must hold; a key can be given once.
  static Result<Filters> parse(const std::vector<Filter>& known,
                               const std::vector<std::string>& given);
  const Query& query() const { return query_; }
  bool here() const { return !here_.empty(); }
  Json of(const Json& rows) const;

 private:
  Query query_;
  std::vector<std::pair<Filter, std::string>> here_;
};

// For completion: "status=Allocated", "group=".
std::vector<std::string> filter_words(const std::vector<Filter>& known);

}  // namespace clusterctl::cli
