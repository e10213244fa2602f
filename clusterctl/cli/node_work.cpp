#include <fmt/format.h>

#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/plan_view.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/vars.h"
#include "cli/work.h"

namespace clusterctl::cli {
namespace {

std::string summary_of(const std::string& kind) {
  if (kind == "check") return "See whether nodes can be commissioned; changes nothing on them";
  if (kind == "commission")
    return "Install the services of their group and capabilities, and verify them";
  if (kind == "verify") return "Look whether the services of commissioned nodes are healthy";
  if (kind == "drain")
    return "Take work off nodes: the scheduler moves it elsewhere, and that is waited for";
  if (kind == "activate") return "Give nodes work again";
  if (kind == "pause") return "Give nodes no new work; what runs there goes on";
  if (kind == "promote") return "Make workers managers of the cluster";
  if (kind == "demote") return "Make managers workers; they stay in the cluster";
  if (kind == "replace") return "Put a new node in the place of another one, which leaves";
  if (kind == "update")
    return "Bring commissioned nodes to what is wanted now, batch by batch, without tearing down";
  return "Take nodes out of the cluster and remove what was installed";
}

std::string details_of(const std::string& kind) {
  const std::string common =
      "The command stays attached and shows progress; its exit code is the job's. Ctrl-C only "
      "stops watching:\n"
      "the job goes on, and clusterctl job wait watches it again.\n";
  if (kind == "commission") {
    return common +
           "Without names: every accepted node that is not commissioned and whose own host group "
           "is the given one;\n"
           "the list is shown and must be confirmed (or --yes).\n"
           "With names and without --host-group: the host group of each node's own record.\n"
           "Examples: clusterctl node commission --host-group=service-master\n"
           "          clusterctl node commission n4 -g service-worker -e '{\"docker_version\": "
           "\"20.10\"}'";
  }
  if (kind == "decommission") {
    return common +
           "Always asks, unless --yes is given. A machine that will never answer: --force "
           "--i-have-powered-it-off.";
  }
  if (kind == "drain") {
    return common +
           "Done through a manager; ends when nothing of the scheduler runs there and every "
           "replica "
           "that left\n"
           "runs elsewhere. When the deadline passes first, one line says what blocks, and the "
           "availability is\n"
           "put back (unless --keep-on-failure). Containers that the scheduler does not know stay.";
  }
  if (kind == "activate")
    return common + "What runs elsewhere stays there until it is started anew.";
  if (kind == "pause")
    return common + "clusterctl node activate ends it, clusterctl node drain also moves what runs.";
  if (kind == "promote" || kind == "demote") {
    return common +
           "One after another, each after a look at the majorities. The node gets the first host "
           "group with that role, or the\n"
           "given one, and the capabilities of the group, or the given ones. It stays in the "
           "cluster and keeps what runs there.\n" +
           (kind == "promote"
                ? "A node that fails is made a worker again, and what it had got is removed."
                : "What only managers carry is removed, after its part in the majorities was given "
                  "up. A node that fails is made\n"
                  "a manager again. The last manager is refused.") +
           "\nExample: clusterctl node " + kind + " n4 --plan";
  }
  if (kind == "replace") {
    return common +
           "The new node gets the other one's host group, capabilities, availability and labels "
           "(its own labels win).\n"
           "One that lives leaves when the new one is verified. One that will never answer goes "
           "first: power it off and give\n"
           "--force --i-have-powered-it-off. When it fails on the way, clusterctl job resume, or "
           "the same command again, goes on.\n"
           "Example: clusterctl node replace n2 --with n7";
  }
  if (kind == "update") {
    return common +
           "Managers one by one, each after a look at the majorities; then workers, at most "
           "--max-unavailable at once,\n"
           "counting those that are away already. A batch is drained (if a service that stops the "
           "node may change),\n"
           "converged and verified before the next one begins. Stops before the next batch when a "
           "node has failed\n"
           "(--max-failures); the others are untouched. Without names: every commissioned node, "
           "after asking.\n"
           "With names, --host-group and --capabilities are what the nodes get: one after another, "
           "what a node loses is removed,\n"
           "what it gains is installed, and the group is recorded when that is verified.\n"
           "With --service the nodes that carry it, and only its part of them: what is recorded of "
           "the "
           "others stays,\n"
           "so that a node whose other settings differ as well is still shown as Drifted.\n"
           "Examples: clusterctl node update --plan\n"
           "          clusterctl node update --service=etcd --var etcd_log_level=debug\n"
           "          clusterctl node update -g service-worker --max-unavailable 10%\n"
           "          clusterctl node update n4 --host-group=service-master";
  }
  return common + (kind == "check"
                       ? "Without names: every accepted node, without spare and retired ones."
                       : "Without names: every commissioned node.");
}

class NodeWork final : public Command {
 public:
  explicit NodeWork(const std::string& kind) : Command(kind, summary_of(kind)) {
    details = details_of(kind);
    commission_ = kind == "commission";
    decommission_ = kind == "decommission";
    update_ = kind == "update";
    drain_ = kind == "drain";
    schedules_ = drain_ || kind == "activate" || kind == "pause";
    role_ = kind == "promote" || kind == "demote";
    replace_ = kind == "replace";
  }

  void options(Options& o) override {
    if (replace_) {
      o.arguments("OLD", names_, "name or id of the node that leaves");
      o.value("--with", "NEW", with_, "name or id of the node that takes its place");
      o.flag("--take-vars", take_vars_, "the new node gets the other one's variables as well");
      o.flag("--keep-on-failure", keep_, "leave the new node as it is when it failed");
    } else {
      o.arguments("NAMES", names_, "names or ids of the nodes");
    }
    if (!replace_ && !role_) {
      o.value("-l,--selector", "SELECTOR", selector_,
              "nodes with these labels instead of names: k=v,k2!=v2");
    }
    if (role_) {
      o.value("-g,--host-group", "GROUP", group_,
              "host group the nodes get; default: the first of the catalog with that role");
      o.flag("--keep-on-failure", keep_, "leave a node that failed as it is, to look at it");
    }
    if (role_ || update_) {
      o.list("--capabilities,--capability", "NAMES", capabilities_,
             "what the named nodes may carry afterwards; default: those of the group", true);
    }
    if (commission_) {
      o.value("-g,--host-group", "GROUP", group_,
              "host group the nodes get: service-master, service-worker, …");
      o.list("--capabilities,--capability", "NAMES", capabilities_,
             "what the nodes may carry; default: those of the group", true);
      o.value("--availability", "WORD", availability_,
              "availability in the cluster from the first moment: active, pause, drain")
          .choices = {"active", "pause", "drain"};
      o.flag("--keep-on-failure", keep_, "leave a node that failed as it is, to look at it");
      o.flag("--controller-host", controller_host_,
             "the machine that the controller runs on is meant as well");
    }
    if (decommission_ || replace_) {
      o.value("--level", "LEVEL", level_,
              "what is removed: membership, state (default), packages, images")
          .choices = {"membership", "state", "packages", "images"};
      o.flag("--i-have-powered-it-off", powered_off_,
             "the machine is off and stays off: remove it through a survivor");
    }
    if (update_) rolling_options(o);
    if (schedules_ || update_) {
      o.value("-g,--host-group", "GROUP", group_,
              update_ ? "instead of names: all nodes of this group; with names: the group they get"
                      : "instead of names: all nodes of this group");
      o.flag("--keep-on-failure", keep_,
             "leave a node that failed as it is, also its availability");
    }
    if (drain_) max_unavailable_option(o);
    if (name == "check" || name == "verify") {
      o.value("-g,--host-group", "GROUP", group_,
              name == "check" ? "without names: all nodes of this group; with names: the group "
                                "they are checked for"
                              : "instead of names: all nodes of this group");
    }
    if (drain_ || update_) {
      o.value("--deadline", "TIME", deadline_,
              "how long a drain may take: 90s, 10m, 2h; default: swarm_drain_wait, 10 minutes");
    }
    if (commission_ || decommission_ || role_ || replace_) {
      o.flag("--force", force_, "go on where a rule allows it: members missing, machine dead");
    }
    if (commission_ || decommission_ || update_ || role_ || replace_)
      o.flag("--allow-outage", outage_, "accept that a service stops for a while");
    if (!schedules_) {
      o.list("-e,--extra-vars", "JSON", extra_vars_,
             "Ansible variables of this job, a JSON object or @FILE; they win over all others");
      o.list("--var", "K=VALUE", vars_, "one such variable; VALUE is JSON or text");
    }
    o.value("--timeout", "DUR", timeout_, "stop the job when it takes longer: 90s, 10m, 2h");
    o.value("--silence-timeout", "DUR", silence_,
            "stop the job when Ansible gives no sign of life for so long");
    o.value("--reason", "TEXT", reason_, "why; kept with the job and in the history of its nodes");
    o.flag("--plan", plan_, "only show what would be done");
    o.flag("--detach", detach_, "do not wait: print the job's id");
    o.flag("--if-busy-refuse", refuse_busy_,
           "refuse instead of waiting behind other work on the same nodes");
    o.flag("-y,--yes", yes_, "do not ask");
  }

  Result<int> run(Session& session) override {
    if (commission_ && names_.empty() && selector_.empty() && group_.empty()) {
      return usage("name the nodes, or give a host group to commission all that wait for it",
                   "clusterctl node commission NAME…, or --host-group=GROUP");
    }
    if (decommission_ && names_.empty() && selector_.empty()) {
      return usage("name the nodes to decommission", "clusterctl node decommission NAME…");
    }
    if (schedules_ && names_.empty() && selector_.empty() && group_.empty()) {
      return usage(fmt::format("name the nodes to {}", name),
                   fmt::format("clusterctl node {} NAME…, or --selector, or --host-group", name));
    }
    if (role_ && names_.empty()) {
      return usage(fmt::format("name the nodes to {}", name),
                   fmt::format("clusterctl node {} NAME…", name));
    }
    if (replace_ && (names_.size() != 1 || with_.empty())) {
      return usage("name one node, and the one that takes its place",
                   "clusterctl node replace OLD --with NEW");
    }
    if (schedules_ && !names_.empty() && !group_.empty()) {
      return usage("names and --host-group exclude each other here: it only selects nodes",
                   "clusterctl node update NAME --host-group=GROUP gives another group");
    }
    const bool demote = name == "demote";
    const bool ask =
        !plan_ && !yes_ &&
        (decommission_ || replace_ || demote || ((commission_ || update_) && names_.empty()));
    if (ask && !session.terminal.can_ask()) {
      return usage("this needs a confirmation and there is no terminal to ask on",
                   "give --yes, or look first with --plan");
    }
    auto body = request();
    if (!body) return fail(body.error());
    session.requested_nodes = names_.size();
    if (plan_) return show_plan(session, std::move(*body));
    if (ask) {
      auto yes = confirm(session, *body);
      if (!yes) return fail(yes.error());
      if (!*yes) {
        session.note("nothing was done");
        return kExitRefused;
      }
    }
    return start_job(session, *body, detach_);
  }

 private:
  void max_unavailable_option(Options& o) {
    o.value("--max-unavailable", "N|N%", max_unavailable_,
            "workers that may be down at once, with those that are away already; default: the "
            "cluster's, at first 1");
  }
  void rolling_options(Options& o) {
    max_unavailable_option(o);
    o.number("--max-failures", "N", max_failures_,
             "stop before the next batch when so many nodes have failed; default 1");
    o.list("--service,--services", "NAMES", services_,
           "only these services of the nodes; the others are neither restarted nor changed", true);
    o.flag("--no-drain", no_drain_, "do not drain nodes first: what runs there stops with them");
    o.flag("--drain", drain_always_, "drain every node first, also if nothing seems to change");
  }

  static tl::unexpected<Error> usage(std::string message, std::string hint) {
    return fail(Code::kInvalid, "usage", std::move(message), std::move(hint));
  }

  Result<Json> request() const {
    Json body{{"kind", name}};
    const auto put = [&body](const char* key, const auto& value) {
      if (!value.empty()) body[key] = value;
    };
    put("nodes", names_);
    put("selector", selector_);
    put("host_group", group_);
    put("capabilities", capabilities_);
    put("services", services_);
    put("availability", availability_);
    put("with", with_);
    put("level", level_);
    put("reason", reason_);
    put("timeout", timeout_);
    put("silence_timeout", silence_);
    put("deadline", deadline_);
    put("max_unavailable", max_unavailable_);
    if (max_failures_) body["max_failures"] = *max_failures_;
    if (no_drain_ && drain_always_)
      return usage("--drain and --no-drain exclude each other", "give one of them");
    if (no_drain_ || drain_always_) body["drain"] = no_drain_ ? "never" : "always";
    const auto set = [&body](const char* key, bool value) {
      if (value) body[key] = true;
    };
    set("force", force_);
    set("powered_off", powered_off_);
    set("allow_outage", outage_);
    set("keep_on_failure", keep_);
    set("take_vars", take_vars_);
    set("controller_host", controller_host_);
    if (refuse_busy_) body["if_busy"] = "refuse";
    auto vars = parse_extra_vars(extra_vars_);
    if (!vars) return vars;
    auto more = parse_assignments(vars_, false);
    if (!more) return more;
    vars->update(*more);
    put("vars", *vars);
    return body;
  }

  Result<bool> confirm(Session& session, const Json& body) {
    auto plan = ask_plan(session, body);
    if (!plan) return fail(plan.error());
    session.terminal.err(plan_text(*plan));
    const std::vector<std::string> nodes = plan_nodes(*plan);
    const std::string list = nodes.empty() ? "these nodes" : join(nodes, ", ");
    if (replace_ || role_)
      return session.terminal.confirm(replace_
                                          ? fmt::format("Replace {} with {}?", names_[0], with_)
                                          : fmt::format("Demote {}?", list));
    return session.terminal.confirm(decommission_ ? fmt::format("Decommission {}?", list)
                                                  : fmt::format("{} {} ({})?",
                                                                update_ ? "Update" : "Commission",
                                                                count(nodes.size(), "node"), list));
  }

  bool commission_ = false, decommission_ = false, update_ = false, drain_ = false,
       schedules_ = false, role_ = false, replace_ = false;
  std::vector<std::string> names_, capabilities_, services_, extra_vars_, vars_;
  bool take_vars_ = false;
  std::string with_;
  std::string selector_, group_, availability_, level_, reason_, deadline_, max_unavailable_,
      timeout_, silence_;
  std::optional<int64_t> max_failures_;
  bool no_drain_ = false, drain_always_ = false;
  bool keep_ = false, powered_off_ = false, force_ = false, outage_ = false;
  bool controller_host_ = false;
  bool plan_ = false, detach_ = false, refuse_busy_ = false, yes_ = false;
};

}  // namespace

CommandPtr make_node_work(const std::string& kind) {
  return std::make_unique<NodeWork>(kind);
}

}  // namespace clusterctl::cli
