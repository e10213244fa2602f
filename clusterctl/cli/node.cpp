#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "cli/changes_plan.h"
#include "cli/each_node.h"
#include "cli/node_commands.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/vars.h"

namespace clusterctl::cli {
namespace {

// "ssh-ed25519 AAAA…" as given, or out of a public key file.
Result<std::string> host_key(const std::string& given) {
  std::string line = given;
  if (given.starts_with('@')) {
    auto content = read_file(given.substr(1), 1 << 16);
    if (!content) return fail(content.error());
    line = split(trim(*content), '\n').front();
  }
  const std::vector<std::string> parts = split(trim(line), ' ', true);
  if (parts.size() < 2) {
    return fail(Code::kInvalid, "usage", "--host-key needs a key like \"ssh-ed25519 AAAA…\"",
                "@FILE reads it from a public key file");
  }
  return parts[0] + " " + parts[1];
}

class NodeAdd final : public Command {
 public:
  NodeAdd() : Command("add", "Put a machine into the inventory") {
    details =
        "Nothing is done on the machine. It must run an OS and answer SSH.\n"
        "Example: clusterctl node add n4 --addr 10.0.0.14 --host-group service-worker --label "
        "rack=r3";
  }

  void options(Options& o) override {
    o.argument("NAME", name_, "name of the node: lower-case letters, digits, dots, dashes");
    o.value("--addr", "ADDRESS", addr_, "IP address or host name by which it is reached").required =
        true;
    o.value("--ssh-user", "USER", user_, "user for SSH; default: the daemon's setting");
    o.number("--ssh-port", "PORT", port_, "port of SSH; default 22");
    o.value("--host-key,--ssh-key-pin", "KEY", key_,
            "the machine's SSH host key, \"ssh-ed25519 AAAA…\" or @FILE; default: pinned by the "
            "first check");
    o.value("--jump", "HOST", jump_, "SSH jump host: user@host:port");
    o.value("-g,--host-group", "GROUP", group_,
            "host group: service-master, service-worker, or another of the catalog");
    o.list("--capability,--capabilities", "NAME", capabilities_,
           "what it may carry; default: those of the group", true);
    o.list("--label", "K=V", labels_, "label for selectors");
    o.list("--var", "K=VALUE", vars_, "Ansible host variable; VALUE is JSON or text");
    o.value("--availability", "WORD", availability_, "active, pause or drain").choices = {
        "active", "pause", "drain"};
    o.flag("--plan", plan_, "only show what would change");
  }

  Result<int> run(Session& session) override {
    auto spec = make_spec();
    if (!spec) return fail(spec.error());
    if (plan_) {
      Json node{{"name", name_}, {"spec", std::move(*spec)}};
      return show_changes(session, {{"nodes", Json::array({std::move(node)})}});
    }
    auto node = session.call("POST", "/v1/nodes", {{"name", name_}, {"spec", std::move(*spec)}});
    if (!node) return fail(node.error());
    if (session.structured()) {
      session.data(*node);
    } else if (session.names_only()) {
      session.line(text(*node, "name"));
    } else {
      session.line(fmt::format("node {} added with id {}", text(*node, "name"), text(*node, "id")));
      session.next("clusterctl node check " + text(*node, "name"));
    }
    return kExitOk;
  }

 private:
  Result<Json> make_spec() const {
    Json spec{{"addr", addr_}};
    Json ssh = Json::object();
    if (!user_.empty()) ssh["user"] = user_;
    if (port_) ssh["port"] = *port_;
    if (!jump_.empty()) ssh["jump"] = jump_;
    if (!key_.empty()) {
      auto key = host_key(key_);
      if (!key) return fail(key.error());
      ssh["host_key"] = *key;
    }
    if (!ssh.empty()) spec["ssh"] = std::move(ssh);
    if (!group_.empty()) spec["host_group"] = group_;
    if (!capabilities_.empty()) spec["capabilities"] = capabilities_;
    if (!availability_.empty()) spec["availability"] = availability_;
    auto labels = parse_labels(labels_, false);
    if (!labels) return labels;
    if (!labels->empty()) spec["labels"] = std::move(*labels);
    auto vars = parse_assignments(vars_, false);
    if (!vars) return vars;
    if (!vars->empty()) spec["vars"] = std::move(*vars);
    return spec;
  }

  std::string name_, addr_, user_, key_, jump_, group_, availability_;
  std::optional<int64_t> port_;
  std::vector<std::string> capabilities_, labels_, vars_;
  bool plan_ = false;
};

class NodeRm final : public Command {
 public:
  NodeRm() : Command("rm", "Forget nodes that are not commissioned") {
    details = "A commissioned node is refused: clusterctl node decommission first.";
  }
  void options(Options& o) override {
    o.arguments("NAMES", names_, "names or ids of the nodes", true);
    o.flag("--plan", plan_, "only show what would change");
  }

  Result<int> run(Session& session) override {
    auto targets = named_nodes(session, names_);
    if (!targets) return fail(targets.error());
    EachNode each(session, "DELETE", "", nullptr, nullptr);
    return plan_ ? each.plan(*targets) : each.run(*targets, "removed");
  }

 private:
  std::vector<std::string> names_;
  bool plan_ = false;
};

}  // namespace

CommandPtr make_node_add() {
  return std::make_unique<NodeAdd>();
}
CommandPtr make_node_rm() {
  return std::make_unique<NodeRm>();
}

Noun node_noun() {
  Noun noun{"node", "The machines: inventory, commission, decommission", {"nodes"}, {}, nullptr};
  noun.commands.push_back(make_node_ls());
  noun.commands.push_back(make_node_inspect());
  noun.commands.push_back(make_node_get());
  noun.commands.push_back(make_node_add());
  for (const char* kind : {"check", "commission", "verify", "drain", "pause", "activate", "update",
                           "promote", "demote", "replace", "decommission"}) {
    noun.commands.push_back(make_node_work(kind));
  }
  noun.commands.push_back(make_node_maintenance());
  noun.commands.push_back(make_node_reboot());
  noun.commands.push_back(make_node_label());
  noun.commands.push_back(make_node_accept());
  noun.commands.push_back(make_node_reject());
  noun.commands.push_back(make_node_forget_hostkey());
  noun.commands.push_back(make_node_allocate());
  noun.commands.push_back(make_node_history());
  for (CommandPtr& command : make_node_identity()) noun.commands.push_back(std::move(command));
  noun.commands.push_back(make_node_rm());
  return noun;
}

}  // namespace clusterctl::cli
