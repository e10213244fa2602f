// How every list is read in pieces: `limit` says how many at most, and when there is more, the
// answer has `next`, which the next request gives as `after`. A cursor is a place in the order of
// the list, not a number of entries: nothing is told twice or left out when the list changes
// meanwhile. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "api/http.h"

namespace clusterctl::api {

struct Page {
  size_t limit = 0;
  std::string after;  // empty: from the beginning
};

// The query parameters, with those that a list has besides.
std::vector<std::string> paged(std::vector<std::string> others = {});

Result<Page> read_page(const Request& request, int64_t fallback, int64_t max);
// For lists by id: `after` is one. By number: 0 means from the beginning.
Result<Page> read_page_by_id(const Request& request, int64_t fallback, int64_t max);
Result<uint64_t> number_cursor(const Page& page);

// The page of a list that is short by nature and was made whole, answer[key]. Its rows are known by
// `name`; `sorted`: by that, so that the row that `after` names need not be there any more.
Result<Response> page_of(const Request& request, Json answer, const std::string& key, bool sorted,
                         const std::string& name = "name");

}  // namespace clusterctl::api
