#include "inventory/inventory.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/inventory_import.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

class Import final : public Command {
 public:
  Import() : Command("import", "Take over an Ansible inventory as nodes and globals") {
    details =
        "FILE is a YAML inventory, or a folder with .yml files; group_vars/ and host_vars/ beside "
        "it are read too.\n"
        "  hosts in a host group        nodes of that group\n"
        "  ansible_host, ansible_port,\n"
        "  ansible_user                 address and SSH settings of the node\n"
        "  clusterctl_ssh_host_key      its pinned host key; clusterctl_ssh_jump: its jump host\n"
        "  clusterctl_capabilities, clusterctl_availability, clusterctl_labels, "
        "clusterctl_versions\n"
        "                               these fields of the node\n"
        "  other host and group vars    variables of the node\n"
        "  vars of the group all        globals\n"
        "Nodes that exist are changed where the file says something else; nothing is ever removed. "
        "All problems\n"
        "are reported before anything is sent.";
  }
  void options(Options& o) override {
    o.argument("FILE", path_, "file or folder");
    o.list("-g,--host-group", "NAME", host_groups_,
           "groups that are host groups; default: those of the daemon's catalog", true);
    o.flag("--dry-run,--plan", dry_run_, "only report what would be done");
  }

  Result<int> run(Session& session) override {
    std::vector<std::string> groups = host_groups_;
    if (groups.empty()) {
      auto cluster = session.get("/v1/cluster");
      if (!cluster) return fail(cluster.error());
      groups = texts(field(*cluster, "host_groups"));
      if (groups.empty()) groups = {"service-master", "service-worker"};
    }
    auto inventory = inventory::read_inventory(path_, groups);
    if (!inventory) return fail(inventory.error());
    session.requested_nodes = inventory->nodes.size();
    auto nodes = session.get_all("/v1/nodes", {}, "nodes");
    if (!nodes) return fail(nodes.error());
    auto globals = session.get("/v1/globals");
    if (!globals) return fail(globals.error());
    auto changes = compare(inventory->nodes, *nodes);
    if (!changes) return fail(changes.error());
    const Json patch = changed_names(field(*globals, "vars"), inventory->globals);
    if (!dry_run_) {
      if (auto done = apply(session, *changes, patch); !done) return fail(done.error());
    }
    report(session, *inventory, *changes, patch);
    return kExitOk;
  }

 private:
  // Globals are merged by name, values as a whole; null when nothing differs.
  static Json changed_names(const Json& now, const Json& wanted) {
    Json out;
    for (const auto& [name, value] : wanted.items()) {
      if (field(now, name) != value) out[name] = value;
    }
    return out;
  }

  void report(Session& session, const inventory::Inventory& inventory,
              const std::vector<Change>& changes, const Json& globals) const {
    static constexpr const char* kDone[] = {"created", "updated", "unchanged"};
    size_t counts[3] = {0, 0, 0};
    Json list = Json::array();
    std::string lines;
    for (const Change& c : changes) {
      const auto kind = static_cast<size_t>(c.kind);
      ++counts[kind];
      std::vector<std::string> fields;
      if (c.kind == Change::Kind::kUpdate) {
        for (const auto& [key, value] : c.body.items()) fields.push_back(key);
      }
      list.push_back({{"name", c.name}, {"result", kDone[kind]}, {"fields", fields}});
      lines += session.names_only()
                   ? c.name + "\n"
                   : fmt::format("{}: {}{}\n", c.name, kDone[kind],
                                 fields.empty() ? "" : " (" + join(fields, ", ") + ")");
    }
    std::vector<std::string> names;
    if (globals.is_object()) {
      for (const auto& [key, value] : globals.items()) names.push_back(key);
    }
    for (const std::string& note : inventory.notes) session.note("note: " + clean(note));
    if (session.structured()) {
      return session.data(
          {{"nodes", list}, {"globals", names}, {"notes", inventory.notes}, {"dry_run", dry_run_}});
    }
    session.terminal.out(clean_lines(lines));
    if (session.names_only()) return;
    if (!names.empty()) session.line(clean("globals: " + join(names, ", ")));
    session.line(fmt::format("{}{} created, {} updated, {} unchanged", dry_run_ ? "would be: " : "",
                             counts[0], counts[1], counts[2]));
    session.next(dry_run_
                     ? "the same without --dry-run does it"
                     : "clusterctl node check, then clusterctl node commission --host-group=GROUP");
  }

  std::string path_;
  std::vector<std::string> host_groups_;
  bool dry_run_ = false;
};

class Export final : public Command {
 public:
  Export() : Command("export", "Write nodes and globals as an Ansible inventory") {
    details =
        "YAML, or JSON with -o json. Secrets stay on the daemon: they are written as {\"secret\": "
        "\"NAME\"}.";
  }
  Result<int> run(Session& session) override {
    auto nodes = session.get_all("/v1/nodes", {}, "nodes");
    if (!nodes) return fail(nodes.error());
    auto globals = session.get("/v1/globals");
    if (!globals) return fail(globals.error());
    const Json document = inventory::to_ansible_inventory(*nodes, field(*globals, "vars"));
    if (session.format != Format::kJson) session.format = Format::kYaml;
    session.data(document);
    return kExitOk;
  }
};

// What ansible-inventory expects of an executable inventory.
class Dynamic final : public Command {
 public:
  Dynamic() : Command("inventory", "Nodes as an Ansible inventory") {
    details =
        "--list and --host are what Ansible calls an executable inventory with; the output is "
        "JSON.";
  }
  void options(Options& o) override {
    o.flag("--list", list_, "the whole inventory of commissioned nodes");
    o.value("--host", "NAME", host_, "variables of one host");
  }
  Result<int> run(Session& session) override {
    if (list_ == !host_.empty()) {
      return fail(Code::kInvalid, "usage",
                  "clusterctl inventory needs import, export, --list or --host NAME",
                  "clusterctl inventory --help");
    }
    auto inventory = session.get("/v1/inventory");
    if (!inventory) return fail(inventory.error());
    if (list_) {
      session.terminal.out(dump_json(*inventory, 2) + "\n");
      return kExitOk;
    }
    const Json& vars = field(field(field(*inventory, "_meta"), "hostvars"), host_);
    if (vars.is_null()) {
      return fail(Code::kNotFound, "no_node",
                  fmt::format("no commissioned node is called \"{}\"", one_line(host_)));
    }
    session.terminal.out(dump_json(vars, 2) + "\n");
    return kExitOk;
  }

 private:
  bool list_ = false;
  std::string host_;
};

}  // namespace

Noun inventory_noun() {
  Noun noun{"inventory", "Ansible inventories in and out", {}, {}, std::make_unique<Dynamic>()};
  noun.commands.push_back(std::make_unique<Import>());
  noun.commands.push_back(std::make_unique<Export>());
  return noun;
}

}  // namespace clusterctl::cli
