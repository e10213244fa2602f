// Out of service and back: `node maintenance enter|exit`, `node reboot`.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/node_commands.h"
#include "cli/plan_view.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/work.h"

namespace clusterctl::cli {
namespace {

// What both have in common; empty values and false are not sent.
class Stay : public Command {
 public:
  using Command::Command;

 protected:
  void target_options(Options& o) {
    o.arguments("NAMES", names_, "names or ids of the nodes");
    o.value("-l,--selector", "SELECTOR", selector_,
            "nodes with these labels instead of names: k=v,k2!=v2");
    o.value("-g,--host-group", "GROUP", group_, "instead of names: all nodes of this group");
  }
  void leaving_options(Options& o) {
    o.value("--reason", "TEXT", reason_, "why; everybody sees it");
    o.value("--owner", "NAME", owner_, "for whom; default: who gives the command");
    o.value("--max-unavailable", "N|N%", max_unavailable_,
            "workers that may be away at once, with those that are away already; default: the "
            "cluster's");
    o.value("--deadline", "TIME", deadline_,
            "how long a drain may take: 90s, 10m, 2h; default: swarm_drain_wait, 10 minutes");
    o.flag("--force", force_,
           "go on where only work suffers: budget spent, no place for it, a node that is silent");
    o.flag("--allow-outage", outage_,
           "accept that a service of the cluster stops: one manager of one or two");
  }
  void job_options(Options& o) {
    o.value("--timeout", "DUR", timeout_, "stop the job when it takes longer: 90s, 10m, 2h");
    o.flag("--plan", plan_, "only show what would be done");
    o.flag("--detach", detach_, "do not wait: print the job's id");
    o.flag("--if-busy-refuse", refuse_busy_,
           "refuse instead of waiting behind other work on the same nodes");
    o.flag("-y,--yes", yes_, "do not ask");
  }

  bool names_nothing() const { return names_.empty() && selector_.empty() && group_.empty(); }

  Json request(const std::string& kind) const {
    Json body{{"kind", kind}};
    const auto put = [&body](const char* key, const auto& value) {
      if (!value.empty()) body[key] = value;
    };
    put("nodes", names_);
    put("selector", selector_);
    put("host_group", group_);
    put("reason", reason_);
    put("owner", owner_);
    put("max_unavailable", max_unavailable_);
    put("deadline", deadline_);
    put("timeout", timeout_);
    if (force_) body["force"] = true;
    if (outage_) body["allow_outage"] = true;
    if (refuse_busy_) body["if_busy"] = "refuse";
    return body;
  }

  Result<int> send(Session& session, Json body) const {
    session.requested_nodes = names_.size();
    return plan_ ? show_plan(session, std::move(body)) : start_job(session, body, detach_);
  }

  std::vector<std::string> names_;
  std::string selector_, group_, reason_, owner_, max_unavailable_, deadline_, timeout_;
  bool force_ = false, outage_ = false, plan_ = false, detach_ = false, refuse_busy_ = false,
       yes_ = false;
};

class Maintenance final : public Stay {
 public:
  Maintenance() : Stay("maintenance", "Take nodes out of service for a while, and back") {
    details =
        "enter: nothing new comes to the nodes, what runs there moves away, the virtual address "
        "goes to another\n"
        "manager. They stay members and stay out, over reboots of theirs and restarts of the "
        "daemon, until exit.\n"
        "exit: the nodes are verified, and get exactly the availability they had. A node that is "
        "not well stays\n"
        "in Maintenance and says why.\n"
        "Refused, with the list of what would break, when a majority would stop (--allow-outage) "
        "or work would\n"
        "suffer (--force). After --for or --until the node is shown as overdue; nothing else "
        "happens.\n"
        "Examples: clusterctl node maintenance enter node3 --reason \"new memory\" --for 2h\n"
        "          clusterctl node maintenance exit node3";
  }

  void options(Options& o) override {
    o.argument("ACTION", action_, "enter or exit").choices = {"enter", "exit"};
    target_options(o);
    leaving_options(o);
    o.value("--for", "DUR", for_, "how long it should last: 90m, 2h, 1d");
    o.value("--until", "TIME", until_, "when it should be over: 2026-11-30T22:00:00Z");
    job_options(o);
  }

  Result<int> run(Session& session) override {
    if (names_nothing()) {
      return fail(Code::kInvalid, "usage", fmt::format("name the nodes to {} maintenance", action_),
                  fmt::format("clusterctl node maintenance {} NAME…, or --selector, or "
                              "--host-group",
                              action_));
    }
    Json body = request("maintenance-" + action_);
    if (!for_.empty()) body["for"] = for_;
    if (!until_.empty()) body["until"] = until_;
    return send(session, std::move(body));
  }

 private:
  std::string action_, for_, until_;
};

class Reboot final : public Stay {
 public:
  Reboot() : Stay("reboot", "Reboot nodes through maintenance: drained before, verified after") {
    details =
        "Managers one by one, each after a look at the majorities; then workers, at most "
        "--max-unavailable at once.\n"
        "A node that is in maintenance already is rebooted and stays there. One that does not come "
        "back stays in\n"
        "Maintenance; when it is repaired: clusterctl node maintenance exit NAME.\n"
        "How long a node may take: variable base_reboot_wait, 15 minutes.";
  }

  void options(Options& o) override {
    target_options(o);
    leaving_options(o);
    job_options(o);
  }

  Result<int> run(Session& session) override {
    if (names_nothing()) {
      return fail(Code::kInvalid, "usage", "name the nodes to reboot",
                  "clusterctl node reboot NAME…, or --selector, or --host-group");
    }
    const Json body = request("reboot");
    const bool ask = names_.empty() && !plan_ && !yes_;
    if (ask && !session.terminal.can_ask()) {
      return fail(Code::kInvalid, "usage",
                  "this needs a confirmation and there is no terminal to ask on",
                  "give --yes, or look first with --plan");
    }
    if (ask) {
      auto plan = ask_plan(session, body);
      if (!plan) return fail(plan.error());
      session.terminal.err(plan_text(*plan));
      const auto nodes = plan_nodes(*plan);
      if (!session.terminal.confirm(
              fmt::format("Reboot {} ({})?", count(nodes.size(), "node"), join(nodes, ", ")))) {
        session.note("nothing was done");
        return kExitRefused;
      }
    }
    return send(session, body);
  }

 private:
};

}  // namespace

CommandPtr make_node_maintenance() {
  return std::make_unique<Maintenance>();
}
CommandPtr make_node_reboot() {
  return std::make_unique<Reboot>();
}

}  // namespace clusterctl::cli
