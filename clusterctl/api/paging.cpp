#include "api/paging.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

constexpr size_t kIdLength = 26;  // of a ULID

tl::unexpected<Error> bad_cursor(const std::string& after) {
  return fail(
      Code::kInvalid, "bad_cursor",
      fmt::format("\"after\" is no place in this list: \"{}\"", truncate_utf8(one_line(after), 80)),
      "give the \"next\" of the answer before, or leave it out");
}

}  // namespace

std::vector<std::string> paged(std::vector<std::string> others) {
  others.insert(others.end(), {"limit", "after"});
  return others;
}

Result<Page> read_page(const Request& request, int64_t fallback, int64_t max) {
  const auto limit = request.query_int("limit", fallback, 1, max);
  if (!limit) return fail(limit.error());
  Page page{static_cast<size_t>(*limit), request.query_string("after")};
  if (one_line(page.after) != page.after) return bad_cursor(page.after);
  return page;
}

Result<Page> read_page_by_id(const Request& request, int64_t fallback, int64_t max) {
  auto page = read_page(request, fallback, max);
  if (!page || page->after.empty()) return page;
  const bool id = page->after.size() == kIdLength &&
                  std::all_of(page->after.begin(), page->after.end(), [](unsigned char c) {
                    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
                  });
  if (!id) return bad_cursor(page->after);
  return page;
}

Result<uint64_t> number_cursor(const Page& page) {
  if (page.after.empty()) return uint64_t{0};
  uint64_t number = 0;
  const char* end = page.after.data() + page.after.size();
  const auto [p, error] = std::from_chars(page.after.data(), end, number);
  if (error != std::errc() || p != end || number == 0) return bad_cursor(page.after);
  return number;
}

Result<Response> page_of(const Request& request, Json answer, const std::string& key, bool sorted,
                         const std::string& name) {
  const auto page = read_page(request, 1000, 1000);
  if (!page) return fail(page.error());
  Json rows = std::move(answer[key]);
  auto from = rows.begin();
  if (!page->after.empty()) {
    from = std::find_if(rows.begin(), rows.end(), [&](const Json& row) {
      const auto& at = row.at(name).get_ref<const std::string&>();
      return sorted ? at > page->after : at == page->after;
    });
    if (!sorted && from == rows.end()) return bad_cursor(page->after);
    if (!sorted) ++from;
  }
  Json out = Json::array();
  for (; from != rows.end() && out.size() < page->limit; ++from) out.push_back(std::move(*from));
  if (from != rows.end()) answer["next"] = out.back().at(name);
  answer[key] = std::move(out);
  return Response::json(answer);
}

}  // namespace clusterctl::api
