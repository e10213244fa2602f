// What the operator says about the machine behind a node: see docs/identity.md.
#include <fmt/format.h>

#include "cli/changes_plan.h"
#include "cli/node_commands.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

Result<int> show(Session& session, const Result<Json>& node, const std::string& done,
                 const std::string& next, bool plan = false) {
  if (!node) return fail(node.error());
  if (session.structured()) {
    session.data(*node);
  } else if (session.names_only()) {
    session.line(text(*node, "name"));
  } else {
    session.line(fmt::format("{}node {} {}", plan ? "plan: " : "", text(*node, "name"), done));
    if (plan)
      session.next("nothing was done; the same without --plan does it");
    else if (!next.empty())
      session.next(fmt::format("clusterctl node {} {}", next, text(*node, "name")));
  }
  return kExitOk;
}

class ConfirmHardware final : public Command {
 public:
  ConfirmHardware() : Command("confirm-hardware", "Say that a node's new hardware is right") {
    details =
        "A node whose serial number changed below the same system UUID and network addresses is\n"
        "marked HardwareReplaced (a service profile moved to another blade). Nothing is changed on "
        "it\nbefore somebody has confirmed that. If that is not right: clusterctl node "
        "decommission.";
  }
  void options(Options& o) override {
    o.argument("NAME", name_, "name or id of the node");
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    return show(session,
                session.call("POST",
                             "/v1/nodes/" + client::escape(name_) + "/confirm-hardware" +
                                 (plan_ ? "?dry_run=true" : ""),
                             nullptr),
                "has its hardware confirmed", "verify", plan_);
  }

 private:
  std::string name_;
  bool plan_ = false;
};

class Rename final : public Command {
 public:
  Rename() : Command("rename", "Give a node that is not commissioned another name") {}
  void options(Options& o) override {
    o.argument("NAME", name_, "name or id of the node");
    o.argument("NEW", wanted_, "its new name: lower-case letters, digits, dots, dashes");
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    return show(session,
                session.call("POST",
                             "/v1/nodes/" + client::escape(name_) + "/rename" +
                                 (plan_ ? "?dry_run=true" : ""),
                             {{"name", wanted_}}),
                "has this name now", "", plan_);
  }

 private:
  std::string name_, wanted_;
  bool plan_ = false;
};

class Move final : public Command {
 public:
  Move() : Command("move", "Tell a node's new address") {
    details =
        "The machine is the same and keeps its host key; every later run reaches it there. Members "
        "of a\ncluster may have recorded the old address: verify says so, update puts it right.";
  }
  void options(Options& o) override {
    o.argument("NAME", name_, "name or id of the node");
    o.argument("ADDRESS", addr_, "IP address or host name by which it is reached now");
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    if (plan_) {
      Json node{{"name", name_}, {"spec", {{"addr", addr_}}}};
      return show_changes(session, {{"nodes", Json::array({std::move(node)})}});
    }
    return show(
        session,
        session.call("PATCH", "/v1/nodes/" + client::escape(name_), {{"spec", {{"addr", addr_}}}}),
        "is reached at " + clean(addr_), "check");
  }

 private:
  std::string name_, addr_;
  bool plan_ = false;
};

}  // namespace

std::vector<CommandPtr> make_node_identity() {
  std::vector<CommandPtr> out;
  out.push_back(std::make_unique<ConfirmHardware>());
  out.push_back(std::make_unique<Move>());
  out.push_back(std::make_unique<Rename>());
  return out;
}

}  // namespace clusterctl::cli
