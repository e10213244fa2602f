#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/node_row.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

struct Filter {
  std::string_view key;            // as typed
  std::string_view query;          // the daemon's parameter; empty: compared here
  std::vector<std::string> words;  // allowed values; empty: any
};
const std::vector<Filter>& filters() {
  static const std::vector<Filter> all{
      {"status",
       "lifecycle",
       {"Unallocated", "Provisioning", "Allocated", "Maintenance", "Cancelled", "Decommissioned"}},
      {"state", "presence", {"Unknown", "Discovered", "Disappeared"}},
      {"presence", "presence", {"Unknown", "Discovered", "Disappeared"}},
      {"group", "host_group", {}},
      {"capability", "capability", {}},
      {"role", "", {"manager", "worker"}},
      {"availability", "", {"active", "pause", "drain"}},
      {"name", "", {}}};
  return all;
}

Result<std::pair<const Filter*, std::string>> parse_filter(const std::string& given) {
  const size_t equals = given.find('=');
  std::vector<std::string> keys;
  for (const Filter& f : filters()) keys.emplace_back(f.key);
  const std::string key = given.substr(0, equals);
  const auto it = std::find_if(filters().begin(), filters().end(),
                               [&](const Filter& f) { return f.key == key; });
  if (equals == std::string::npos || it == filters().end()) {
    const std::string near = nearest(key, keys);
    return fail(
        Code::kInvalid, "usage",
        fmt::format("--filter {}: expected one of {}=…", one_line(given), join(keys, "=…, ")),
        near.empty() || near == key ? "" : fmt::format("did you mean {}?", near));
  }
  const std::string value = given.substr(equals + 1);
  if (it->words.empty()) return std::pair{&*it, value};
  for (const std::string& word : it->words) {
    if (lower(word) == lower(value)) return std::pair{&*it, word};
  }
  return fail(
      Code::kInvalid, "usage",
      fmt::format("--filter {}: {} is one of {}", one_line(given), it->key, join(it->words, ", ")));
}

bool matches(const Json& node, const std::vector<std::pair<const Filter*, std::string>>& here) {
  return std::all_of(here.begin(), here.end(), [&](const auto& f) {
    const std::string& value = f.second;
    if (f.first->key == "role") return text(node, "role") == value;
    if (f.first->key == "name") return text(node, "name") == value;
    return text(field(field(node, "spec"), "availability")) == value;
  });
}

class NodeLs final : public Command {
 public:
  NodeLs() : Command("ls", "List the nodes, one line each, sorted by name") {
    aliases = {"list"};
    details =
        "Columns:\n"
        "  ID            short random id; names and prefixes of ids (4 characters) are understood "
        "everywhere\n"
        "  IP            the address by which the node is reached\n"
        "  STATUS        Unallocated, Provisioning, Allocated (verified), Maintenance, Cancelled, "
        "Decommissioned\n"
        "  AVAILABILITY  active, pause (no new work), drain (no work at all)\n"
        "  ROLE          manager or worker, by group and capabilities; the leader is marked\n"
        "  GROUP         host group\n"
        "  CAPABILITIES  what the node may carry\n"
        "  HEALTH        by the last verification: healthy, or what is wrong\n"
        "  with -o wide  PRESENCE, ENGINE (docker's version), SERVICES with versions, LABELS\n"
        "An arrow shows what is applied and what is wanted: worker→master.\n"
        "Filters: status, presence (state), group, capability, role, availability, name.\n"
        "Example: clusterctl node ls --filter status=Allocated -l rack=r3";
  }

  void options(Options& o) override {
    o.list("--filter", "KEY=VALUE", filters_,
           "only nodes for which this holds; several are combined");
    o.value("-l,--selector", "SELECTOR", selector_, "only nodes with these labels: k=v,k2!=v2");
  }

  Result<int> run(Session& session) override {
    Query query;
    std::vector<std::pair<const Filter*, std::string>> here;
    for (const std::string& given : filters_) {
      auto f = parse_filter(given);
      if (!f) return fail(f.error());
      if (f->first->query.empty()) {
        here.push_back(*f);
      } else {
        query.emplace_back(f->first->query, f->second);
      }
    }
    if (!selector_.empty()) query.emplace_back("selector", selector_);
    auto all = session.get_all("/v1/nodes", query, "nodes");
    if (!all) return fail(all.error());
    Json nodes = Json::array();
    for (const Json& node : *all) {
      if (matches(node, here)) nodes.push_back(node);
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const Json& a, const Json& b) { return text(a, "name") < text(b, "name"); });
    show(session, nodes);
    return kExitOk;
  }

 private:
  void show(Session& session, const Json& nodes) {
    if (session.structured()) return session.data(nodes);
    if (session.names_only()) {
      for (const Json& node : nodes) session.line(text(node, "name"));
      return;
    }
    session.terminal.out(table(nodes, session.format == Format::kWide).render());
    if (nodes.empty() && filters_.empty() && selector_.empty()) {
      session.next("clusterctl node add NAME --addr ADDRESS, or clusterctl inventory import FILE");
    }
  }

  static Table table(const Json& nodes, bool wide) {
    std::vector<std::string> head{"ID",   "NAME",  "IP",           "STATUS", "AVAILABILITY",
                                  "ROLE", "GROUP", "CAPABILITIES", "HEALTH"};
    if (wide) head.insert(head.end(), {"PRESENCE", "ENGINE", "SERVICES", "LABELS"});
    Table table(head);
    const std::string leader = leader_of(nodes);
    for (const Json& node : nodes) {
      const Json& status = field(node, "status");
      std::vector<std::string> row{
          text(node, "id"),          text(node, "name"),       text(field(node, "spec"), "addr"),
          text(status, "lifecycle"), shown_availability(node), shown_role(node, leader),
          shown_group(node),         shown_capabilities(node), shown_health(node)};
      if (wide) {
        row.push_back(text(status, "presence"));
        row.push_back(text(field(field(status, "services"), "docker"), "version"));
        row.push_back(shown_services(node, "docker"));
        row.push_back(labels(node));
      }
      table.add(std::move(row));
    }
    return table;
  }

  static std::string labels(const Json& node) {
    std::vector<std::string> out;
    const Json& labels = field(field(node, "spec"), "labels");
    if (labels.is_object()) {
      for (const auto& [key, value] : labels.items()) out.push_back(key + "=" + text(value));
    }
    return join(out, ",");
  }

  std::vector<std::string> filters_;
  std::string selector_;
};

}  // namespace

CommandPtr make_node_ls() {
  return std::make_unique<NodeLs>();
}

}  // namespace clusterctl::cli
