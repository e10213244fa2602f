#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/mask.h"
#include "cli/text.h"
#include "inventory/inventory.h"

namespace clusterctl::cli {
namespace {

constexpr int kMaxPages = 10000;
constexpr int64_t kPageRows = 1000;  // more than the daemon gives at once for some lists

Result<Json> object_of(Result<client::Response> response, const std::string& server) {
  if (!response) return fail(response.error());
  if (response->json.is_object() || response->text.empty()) return std::move(response->json);
  return fail(client::foreign_answer(server, "no JSON object"));
}

// What the lists among the answers consist of.
const std::map<std::string, std::string, std::less<>> kLists{
    {"/v1/nodes", "nodes"},        {"/v1/jobs", "jobs"},         {"/v1/tokens", "tokens"},
    {"/v1/join-tokens", "tokens"}, {"/v1/plans", "plans"},       {"/v1/revisions", "revisions"},
    {"/v1/managers", "managers"},  {"/v1/services", "services"}, {"/v1/events", "events"}};

// An empty list means that there is nothing; a list that is missing, that the answer is none.
Result<Json> checked_list(Result<Json> answer, const std::string& path, const std::string& server) {
  const auto list = kLists.find(path);
  if (!answer || list == kLists.end()) return answer;
  const Json& rows = field(*answer, list->second);
  const bool good = rows.is_array() && std::all_of(rows.begin(), rows.end(),
                                                   [](const Json& row) { return row.is_object(); });
  if (good) return answer;
  return fail(client::foreign_answer(server, fmt::format("\"{}\" is no list", list->second)));
}

std::string problem_line(const Problem& p) {
  return clean(mask_tokens(p.message)) + (p.code.empty() ? "" : " [" + clean(p.code) + "]");
}

}  // namespace

Result<Json> Session::get(const std::string& path, Query query) {
  asked = true;
  return checked_list(
      object_of(rest.send({"GET", path, std::move(query), std::nullopt, {}}), rest.server()), path,
      rest.server());
}

Result<std::string> Session::needed(const Json& answer, std::string_view key) const {
  const Json& value = field(answer, key);
  if (value.is_string() && !value.get_ref<const std::string&>().empty())
    return cli::text(answer, key);
  return fail(client::foreign_answer(rest.server(), fmt::format("\"{}\" is no text", key)));
}

Result<Json> Session::call(const std::string& method, const std::string& path, Json body,
                           std::map<std::string, std::string> headers) {
  client::Request request{method, path, {}, std::nullopt, std::move(headers)};
  if (!body.is_null()) request.body = std::move(body);
  asked = true;
  return object_of(rest.send(request), rest.server());
}

Result<Json> Session::get_all(const std::string& path, Query query, const std::string& key) {
  Json all = Json::array();
  std::string after;
  for (int page = 0; page < kMaxPages; ++page) {
    Query q = query;
    if (!after.empty()) q.emplace_back("after", after);
    auto answer = get(path, q);
    if (!answer) return answer;
    for (const Json& item : field(*answer, key)) all.push_back(item);
    const Json& next = field(*answer, "next");
    if (!next.is_string() || next.get<std::string>().empty() || next.get<std::string>() == after)
      break;
    after = next.get<std::string>();
  }
  return all;
}

Result<Json> Session::get_some(const std::string& path, Query query, const std::string& key,
                               std::optional<int64_t> limit) {
  Json list = Json::array();
  std::string after;
  for (;;) {
    Query q = query;
    if (limit) {
      const auto left = *limit - static_cast<int64_t>(list.size());
      q.emplace_back("limit", std::to_string(std::min<int64_t>(left, kPageRows)));
    }
    if (!after.empty()) q.emplace_back("after", after);
    auto answer = get(path, q);
    if (!answer) return answer;
    const Json page = field(*answer, key);
    for (const Json& item : page) list.push_back(item);
    const Json next = field(*answer, "next");
    const bool more = limit && next.is_string() && next.get<std::string>() != after &&
                      !page.empty() && static_cast<int64_t>(list.size()) < *limit;
    if (more) {
      after = next.get<std::string>();
      continue;
    }
    if (answer->is_object()) (*answer)[key] = std::move(list);
    return answer;
  }
}

void Session::line(std::string_view text) {
  terminal.out(std::string(text) + "\n");
}
void Session::note(std::string_view text) {
  if (!quiet) terminal.err(std::string(text) + "\n");
}
void Session::next(std::string_view text) {
  if (!quiet && !structured() && format != Format::kName) line("next: " + std::string(text));
}

void Session::data(const Json& value) {
  terminal.out(document(value));
}

std::string Session::document(const Json& value) const {
  if (format == Format::kYaml) return (compact ? "---\n" : "") + inventory::to_yaml(value);
  return (compact ? dump_json(value) : dump_json(value, 2)) + "\n";
}

std::string Session::rendered(const Table& table) const {
  return table.render(format == Format::kWide ? 0 : terminal.table_width());
}

void Session::warnings(const Json& answer) {
  for (const Json& w : field(answer, "warnings")) {
    const std::string node = cli::text(w, "node");
    const std::string hint = cli::text(w, "hint");
    note(fmt::format("warning: {}{}{}", node.empty() ? "" : node + ": ", cli::text(w, "message"),
                     hint.empty() ? "" : "; " + hint));
  }
}

void print_error(Terminal& terminal, const Error& error, size_t requested_nodes, bool color) {
  const char* red = color ? "\x1b[31m" : "";
  const char* off = color ? "\x1b[0m" : "";
  std::string out = fmt::format("{}error:{} {}\n", red, off, clean(mask_tokens(error.message)));
  // A single problem is the error itself: it is told once.
  const bool single = error.problems.size() == 1 && !error.problems[0].message.empty() &&
                      error.message.find(error.problems[0].message) != std::string::npos;
  std::map<std::string, std::vector<const Problem*>> by_node;
  for (const Problem& p : error.problems) by_node[p.node].push_back(&p);
  size_t nodes = 0;
  for (const auto& [node, problems] : by_node) {
    if (!node.empty()) ++nodes;
    for (const Problem* p : problems) {
      if (single) continue;
      out += "  " + (node.empty() ? "" : clean(node) + ": ") + problem_line(*p) + "\n";
      if (!p->hint.empty()) out += "      hint: " + clean(p->hint) + "\n";
    }
  }
  if (nodes > 0) {
    out += requested_nodes >= nodes
               ? fmt::format("{} of {} refused\n", nodes, count(requested_nodes, "node"))
               : fmt::format("{} refused\n", count(nodes, "node"));
  }
  const std::string& hint = error.hint.empty() && single ? error.problems[0].hint : error.hint;
  if (!hint.empty()) out += "hint: " + clean(hint) + "\n";
  terminal.err(out);
}

}  // namespace clusterctl::cli
