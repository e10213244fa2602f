#include <fmt/format.h>

#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/node_row.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

std::string row(std::string_view key, const std::string& value) {
  return value.empty() ? "" : fmt::format("{:<14}{}\n", fmt::format("{}:", key), value);
}

std::string map_text(const Json& map) {
  std::vector<std::string> out;
  if (map.is_object()) {
    for (const auto& [key, value] : map.items()) {
      out.push_back(clean(key) + "=" + (value.is_string() ? text(value) : clean(dump_json(value))));
    }
  }
  return join(out, ", ");
}

std::string hardware_text(const Json& h) {
  std::vector<std::string> out;
  for (const char* key : {"vendor", "model", "serial", "series", "os", "os_version", "arch"}) {
    if (const std::string t = text(h, key); !t.empty()) out.push_back(t);
  }
  if (number(field(h, "cpus")) > 0) out.push_back(fmt::format("{} CPUs", number(field(h, "cpus"))));
  if (number(field(h, "memory_mb")) > 0)
    out.push_back(fmt::format("{} MB", number(field(h, "memory_mb"))));
  return join(out, ", ");
}

// What it asked for when it joined.
std::string requested_text(const Json& r) {
  if (!r.is_object()) return "";
  std::vector<std::string> out;
  if (const std::string group = text(r, "host_group"); !group.empty())
    out.push_back("group " + group);
  if (const auto names = texts(field(r, "capabilities")); !names.empty())
    out.push_back("capabilities " + join(names, " "));
  if (const std::string labels = map_text(field(r, "labels")); !labels.empty())
    out.push_back("labels " + labels);
  if (const std::string os = text(r, "os"); !os.empty()) out.push_back("runs " + os);
  return (out.empty() ? "nothing" : join(out, "; ")) + "; joined " + short_time(field(r, "since")) +
         " by token " + text(r, "token");
}

std::string indented(const std::string& table) {
  std::string out;
  for (const std::string& line : split(table, '\n', true)) out += "  " + line + "\n";
  return out;
}

std::string details_of(const Json& node) {
  const Json& spec = field(node, "spec");
  const Json& ssh = field(spec, "ssh");
  const Json& status = field(node, "status");
  const std::string previous = text(status, "previous");
  std::string out =
      row("Name", text(node, "name")) + row("Id", text(node, "id")) +
      row("Address", text(spec, "addr")) + row("Ssh user", text(ssh, "user")) +
      row("Ssh port", text(ssh, "port")) + row("Host key", text(ssh, "host_key")) +
      row("Fingerprint", ssh_fingerprint(text(ssh, "host_key"))) + row("Jump", text(ssh, "jump")) +
      row("Status",
          text(status, "lifecycle") + (previous.empty() ? "" : " (was " + previous + ")")) +
      row("Maintenance", shown_maintenance(node)) + row("Presence", text(status, "presence")) +
      row("Last seen", short_time(field(status, "last_seen"))) +
      row("Acceptance", text(spec, "acceptance")) + row("Allocation", text(spec, "allocation")) +
      row("Group", shown_group(node)) + row("Role", text(node, "role")) +
      row("Capabilities", shown_capabilities(node)) +
      row("Availability", shown_availability(node)) + row("Health", shown_health(node)) +
      row("Requested", requested_text(field(status, "requested"))) +
      row("Labels", map_text(field(spec, "labels"))) +
      row("Versions", map_text(field(spec, "versions"))) +
      row("Variables", map_text(field(spec, "vars"))) +
      row("Hardware", hardware_text(field(status, "hardware"))) +
      row("Created", short_time(field(node, "created")));
  Table services({"SERVICE", "VERSION", "HEALTHY", "ROLE", "OBSERVED", "MESSAGE"});
  const Json& all = field(status, "services");
  if (all.is_object()) {
    for (const auto& [name, s] : all.items()) {
      services.add({name, text(s, "version"), field(s, "healthy") == true ? "yes" : "no",
                    text(s, "role"), short_time(field(s, "observed")), text(s, "message")});
    }
  }
  if (!services.empty()) out += "Services:\n" + indented(services.render());
  Table conditions({"CONDITION", "SINCE", "JOB", "REASON"});
  for (const Json& c : field(status, "conditions")) {
    conditions.add(
        {text(c, "type"), short_time(field(c, "since")), text(c, "job"), text(c, "reason")});
  }
  if (!conditions.empty()) out += "Conditions:\n" + indented(conditions.render());
  return out;
}

Result<int> show(Session& session, const std::vector<std::string>& names) {
  Json nodes = Json::array();
  for (const std::string& name : names) {
    auto node = session.get("/v1/nodes/" + client::escape(name));
    if (!node) return fail(node.error());
    nodes.push_back(std::move(*node));
  }
  if (session.structured()) {
    session.data(nodes.size() == 1 ? nodes[0] : nodes);
    return kExitOk;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (session.names_only()) {
      session.line(text(nodes[i], "name"));
    } else {
      session.terminal.out((i > 0 ? "\n" : "") + details_of(nodes[i]));
    }
  }
  return kExitOk;
}

class NodeInspect final : public Command {
 public:
  NodeInspect() : Command("inspect", "Everything about nodes: wanted, seen, services, conditions") {
    aliases = {"show"};
    details = "-o json or -o yaml shows every field; docs/rest.md explains them.";
  }
  void options(Options& o) override {
    o.arguments("NAMES", names_, "names or ids of the nodes", true);
  }
  Result<int> run(Session& session) override { return show(session, names_); }

 private:
  std::vector<std::string> names_;
};

class NodeGet final : public Command {
 public:
  NodeGet() : Command("get", "The same as ls, or with a name as inspect") {}
  void options(Options& o) override { o.arguments("NAMES", names_, "names or ids of the nodes"); }
  Result<int> run(Session& session) override {
    return names_.empty() ? make_node_ls()->run(session) : show(session, names_);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

CommandPtr make_node_inspect() {
  return std::make_unique<NodeInspect>();
}
CommandPtr make_node_get() {
  return std::make_unique<NodeGet>();
}

}  // namespace clusterctl::cli
