#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/filters.h"
#include "cli/node_commands.h"
#include "cli/node_row.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/watch.h"

namespace clusterctl::cli {
namespace {

const std::vector<Filter>& node_filters() {
  static const std::vector<std::string> presence{"Unknown", "Discovered", "Disappeared"};
  static const std::vector<Filter> all{
      {"status",
       "lifecycle",
       {"Unallocated", "Provisioning", "Allocated", "Maintenance", "Cancelled", "Decommissioned"}},
      {"state", "presence", presence},
      {"presence", "presence", presence},
      {"group", "host_group", {}},
      {"capability", "capability", {}},
      {"role", "", {"manager", "worker"}, {"role"}},
      {"availability", "", {"active", "pause", "drain"}, {"spec", "availability"}},
      {"acceptance", "", {"pending", "accepted", "rejected"}, {"spec", "acceptance"}},
      {"name", "", {}, {"name"}}};
  return all;
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
        "Filters: status, presence (state), group, capability, role, availability, acceptance, "
        "name; all that are\n"
        "given must hold. A terminal's width cuts the widest columns: -o wide shows them whole.\n"
        "Example: clusterctl node ls --filter status=Allocated -l rack=r3";
  }

  void options(Options& o) override {
    o.list("--filter", "KEY=VALUE", filters_,
           "only nodes for which this holds; several are combined")
        .suggestions = filter_words(node_filters());
    o.value("-l,--selector", "SELECTOR", selector_, "only nodes with these labels: k=v,k2!=v2");
    o.flag("-w,--watch", watch_, "show the list again when it has changed, until Ctrl-C");
  }

  Result<int> run(Session& session) override {
    auto filters = Filters::parse(node_filters(), filters_);
    if (!filters) return fail(filters.error());
    const auto look = [&] { return shown(session, *filters); };
    if (watch_) return watch(session, look);
    auto out = look();
    if (!out) return fail(out.error());
    session.terminal.out(*out);
    if (none_at_all_) {
      session.next("clusterctl node add NAME --addr ADDRESS, or clusterctl inventory import FILE");
    }
    return kExitOk;
  }

 private:
  Result<std::string> shown(Session& session, const Filters& filters) {
    Query query = filters.query();
    if (!selector_.empty()) query.emplace_back("selector", selector_);
    auto all = session.get_all("/v1/nodes", query, "nodes");
    if (!all) return fail(all.error());
    Json nodes = filters.of(*all);
    std::sort(nodes.begin(), nodes.end(),
              [](const Json& a, const Json& b) { return text(a, "name") < text(b, "name"); });
    none_at_all_ = nodes.empty() && filters_.empty() && selector_.empty();
    if (session.structured()) return session.document(nodes);
    if (!session.names_only())
      return session.rendered(table(nodes, session.format == Format::kWide));
    std::string out;
    for (const Json& node : nodes) out += text(node, "name") + "\n";
    return out;
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
  bool watch_ = false, none_at_all_ = false;
};

}  // namespace

CommandPtr make_node_ls() {
  return std::make_unique<NodeLs>();
}

}  // namespace clusterctl::cli
