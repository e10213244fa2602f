#include "cli/live_names.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/context_file.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

// The first row that fits. Empty: any.
struct Place {
  std::string_view noun, command, option;
  Live live;
};
constexpr Place kPlaces[] = {
    {"node", "add", "NAME", Live::kNone},
    {"node", "rename", "NEW", Live::kNone},
    {"node", "label", "NAMES", Live::kNodesOrLabels},
    {"node", "replace", "--with", Live::kNodes},
    {"node", "accept", "NAMES", Live::kNodesToAccept},
    {"node", "reject", "NAMES", Live::kNodesToReject},
    {"node", "decommission", "NAMES", Live::kCommissioned},
    {"node", "rm", "NAMES", Live::kNotCommissioned},
    {"node", "", "NAMES", Live::kNodes},
    {"node", "", "NAME", Live::kNodes},
    {"node", "", "OLD", Live::kNodes},
    {"node", "", "--label", Live::kLabels},
    {"context", "", "NAME", Live::kContexts},
    {"context", "", "NAMES", Live::kContexts},
    {"global", "", "NAMES", Live::kVariables},
    {"global", "", "VARIABLES", Live::kAssignments},
    {"inventory", "", "--host", Live::kNodes},
    {"cluster", "token", "TOKEN", Live::kTokens},
    {"cluster", "token", "TOKENS", Live::kTokens},
    {"cluster", "token", "NAME", Live::kTokens},
    {"cluster", "token", "NAMES", Live::kTokens},
    {"", "", "TOKEN", Live::kTokens},
    {"", "", "--context", Live::kContexts},
    {"", "", "--node", Live::kNodes},
    {"", "", "--host-group", Live::kGroups},
    {"", "", "--capability", Live::kCapabilities},
    {"", "", "--capabilities", Live::kCapabilities},
    {"", "", "--selector", Live::kSelectors},
    {"", "", "--to-revision", Live::kRevisions},
    {"", "", "JOB", Live::kJobs},
    {"", "", "PLAN", Live::kPlans},
};

constexpr const char* kMany = "200";

Json ask(client::RestClient& rest, const std::string& path,
         std::vector<std::pair<std::string, std::string>> query = {}) {
  auto answer = rest.send({"GET", path, std::move(query), std::nullopt, {}});
  return answer ? std::move(answer->json) : Json();
}

// Nodes are sorted by name, so a page can begin where the word does: behind all that is smaller.
std::vector<std::pair<std::string, std::string>> page_at(const std::string& word) {
  std::vector<std::pair<std::string, std::string>> query{{"limit", kMany}};
  std::string after = lower(word);
  if (!after.empty() && after.back() > ' ') {
    --after.back();
    query.emplace_back("after", after + "~");
  }
  return query;
}

// Whether a command can do something to that node.
bool is_for(Live live, const Json& node) {
  const std::string acceptance = text(field(node, "spec"), "acceptance");
  const std::string lifecycle = text(field(node, "status"), "lifecycle");
  const bool out = lifecycle == "Unallocated" || lifecycle == "Decommissioned";
  switch (live) {
    case Live::kNodesToAccept:
      return acceptance != "accepted";
    case Live::kNodesToReject:
      return acceptance != "rejected";
    case Live::kCommissioned:
      return !out;
    case Live::kNotCommissioned:
      return out;
    default:
      return true;
  }
}

std::vector<Candidate> nodes(client::RestClient& rest, const std::string& word,
                             Live live = Live::kNodes) {
  std::vector<Candidate> out;
  const Json answer = ask(rest, "/v1/nodes", page_at(word));
  for (const Json& node : field(answer, "nodes")) {
    if (!is_for(live, node)) continue;
    const std::string group = text(field(node, "spec"), "host_group");
    out.push_back({text(node, "name"),
                   text(field(node, "status"), "lifecycle") + (group.empty() ? "" : ", " + group)});
  }
  return out;
}

// "key=" while no key is there, "key=value" then.
std::vector<Candidate> labels(client::RestClient& rest, const std::string& word) {
  std::set<std::string> found;
  const Json answer = ask(rest, "/v1/nodes", {{"limit", kMany}});
  for (const Json& node : field(answer, "nodes")) {
    const Json& all = field(field(node, "spec"), "labels");
    if (!all.is_object()) continue;
    for (const auto& [key, value] : all.items())
      found.insert(clean(key) + "=" + (word.starts_with(key + "=") ? text(value) : ""));
  }
  std::vector<Candidate> out;
  for (const std::string& label : found) out.push_back({label, ""});
  return out;
}

// Rows of a list, with one member as the word and others as what it is.
struct List {
  Live live;
  const char *path, *key, *word, *about, *limit;
};
constexpr List kLists[] = {
    {Live::kJobs, "/v1/jobs", "jobs", "id", "title", "20"},
    {Live::kPlans, "/v1/plans", "plans", "id", "title", ""},
    {Live::kRevisions, "/v1/revisions", "revisions", "revision", "what", "20"},
    {Live::kTokens, "/v1/tokens", "tokens", "name", "kind", ""},
    {Live::kJoinTokens, "/v1/join-tokens", "tokens", "id", "state", ""},
};

std::vector<Candidate> rows(client::RestClient& rest, const List& list) {
  std::vector<Candidate> out;
  const std::string limit = list.limit;
  std::vector<std::pair<std::string, std::string>> query;
  if (!limit.empty()) query.emplace_back("limit", limit);
  const Json answer = ask(rest, list.path, std::move(query));
  for (const Json& row : field(answer, list.key)) {
    const std::string state = list.live == Live::kJobs ? text(row, "state") + ": " : "";
    out.push_back({text(row, list.word), state + text(row, list.about)});
  }
  return out;
}

std::vector<Candidate> variables(client::RestClient& rest, const std::string& behind) {
  std::vector<Candidate> out;
  const Json answer = ask(rest, "/v1/globals");
  const Json& vars = field(answer, "vars");
  if (!vars.is_object()) return out;
  for (const auto& [name, value] : vars.items()) out.push_back({clean(name) + behind, ""});
  return out;
}

std::vector<Candidate> capabilities(client::RestClient& rest) {
  std::set<std::string> found{"can-run-user-containers", "dtr-controller", "dtr-replica",
                              "service-worker",          "storage",        "ucp-controller"};
  const Json answer = ask(rest, "/v1/nodes", {{"limit", kMany}});
  for (const Json& node : field(answer, "nodes")) {
    for (const std::string& name : texts(field(field(node, "spec"), "capabilities")))
      found.insert(name);
  }
  std::vector<Candidate> out;
  for (const std::string& name : found) out.push_back({name, ""});
  return out;
}

}  // namespace

Live live_of(const std::string& noun, const std::string& command, const std::string& option,
             const std::string& placeholder) {
  if (placeholder.starts_with("FILE") || placeholder == "DIR") return Live::kFiles;
  const auto fits = [](std::string_view wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  for (const Place& place : kPlaces) {
    if (fits(place.noun, noun) && fits(place.command, command) && place.option == option)
      return place.live;
  }
  return Live::kNone;
}

std::vector<Candidate> live_names(Live live, const std::string& word, client::RestClient& rest) {
  for (const List& list : kLists) {
    if (list.live != live) continue;
    auto out = rows(rest, list);
    if (live == Live::kJobs)
      out.insert(out.begin(), {{"last", "the newest job"}, {"active", "the one that runs"}});
    return out;
  }
  switch (live) {
    case Live::kNodes:
    case Live::kNodesToAccept:
    case Live::kNodesToReject:
    case Live::kCommissioned:
    case Live::kNotCommissioned:
      return nodes(rest, word, live);
    case Live::kNodesOrLabels: {
      auto out = labels(rest, word);
      if (word.find('=') != std::string::npos) return out;
      for (Candidate& node : nodes(rest, word)) out.push_back(std::move(node));
      return out;
    }
    case Live::kSelectors:
    case Live::kLabels:
      return labels(rest, word);
    case Live::kGroups: {
      std::vector<Candidate> out;
      const Json answer = ask(rest, "/v1/cluster");
      for (const std::string& name : texts(field(answer, "host_groups"))) out.push_back({name, ""});
      return out;
    }
    case Live::kCapabilities:
      return capabilities(rest);
    case Live::kVariables:
      return variables(rest, "");
    case Live::kAssignments:
      return variables(rest, "=");
    default:
      return {};
  }
}

std::vector<Candidate> context_names(const fs::path& file) {
  std::vector<Candidate> out;
  const auto contexts = read_contexts(file);
  if (!contexts) return out;
  for (const auto& [name, c] : contexts->contexts) out.push_back({name, join(c.servers, ",")});
  return out;
}

}  // namespace clusterctl::cli
