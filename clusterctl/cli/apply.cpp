// plan and apply: a file, an earlier revision or a stored plan, compared with the fleet, shown, and
// made true in one commit and the jobs that follow from it.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/attach.h"
#include "cli/difference_view.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/wanted_file.h"

namespace clusterctl::cli {
namespace {

constexpr int kExitChanges = 2;
constexpr int kExitPlanError = 3;

// What both commands have in common: where the wish comes from, and the options of its jobs.
class FleetPlan : public Command {
 public:
  using Command::Command;

 protected:
  void source_options(Options& o) {
    o.value("-f,--file", "FILE|DIR|-", file_,
            "inventory to make true: a file, a folder with inventory/, host_vars/, group_vars/, or "
            "- for standard input");
    o.value("--reader", "WORD", reader_,
            "who reads it: own, ansible (ansible-inventory), or auto: what is outside the own "
            "subset goes to Ansible")
        .choices = {"auto", "own", "ansible"};
    o.number("--to-revision", "N", revision_,
             "go back to what was wanted at this revision (clusterctl revision ls)");
    o.flag("--prune", prune_,
           "remove nodes that the file does not have: decommission, then forget");
    o.flag("--records-only", records_, "change records, start no work on nodes");
    o.value("--max-unavailable", "N|N%", max_unavailable_,
            "of updates: workers that may be down at once");
    o.number("--max-failures", "N", max_failures_, "of updates: stop after so many failed nodes");
    o.flag("--allow-outage", outage_, "accept that a service stops for a while");
    o.flag("--force", force_, "of a commission: go on where a rule allows it");
    o.flag("--controller-host", own_machine_,
           "of a commission: the machine that the controller runs on is meant");
    o.value("--timeout", "DUR", timeout_, "stop a job when it takes longer: 90s, 10m, 2h");
  }

  Status check_sources(bool none_is_fine) const {
    const int given = !file_.empty() + revision_.has_value();
    if (given > 1 || (given == 0 && !none_is_fine)) {
      return fail(Code::kInvalid, "usage",
                  given > 1 ? "-f and --to-revision exclude each other" : "say what to apply",
                  "clusterctl " + name + " -f FILE");
    }
    return {};
  }

  // The body of POST /v1/plans.
  Result<Json> request(Session& session) {
    Json body = Json::object();
    if (revision_) {
      body["to_revision"] = *revision_;
    } else if (!file_.empty()) {
      auto inventory = read_wanted(session, file_, reader_);
      if (!inventory) return fail(inventory.error());
      for (const std::string& note : inventory->notes) session.note("note: " + clean(note));
      session.requested_nodes = inventory->nodes.size();
      body["document"] = document_of(*inventory);
    } else {  // what the records say already
      auto nodes = session.get_all("/v1/nodes", {}, "nodes");
      if (!nodes) return fail(nodes.error());
      Json list = Json::array();
      for (const Json& node : *nodes) list.push_back({{"name", text(node, "name")}});
      body["changes"] = {{"nodes", std::move(list)}};
    }
    if (prune_) body["prune"] = true;
    if (records_) body["work"] = false;
    Json options = Json::object();
    if (!max_unavailable_.empty()) options["max_unavailable"] = max_unavailable_;
    if (max_failures_) options["max_failures"] = *max_failures_;
    if (outage_) options["allow_outage"] = true;
    if (force_) options["force"] = true;
    if (own_machine_) options["controller_host"] = true;
    if (!timeout_.empty()) options["timeout"] = timeout_;
    if (!options.empty()) body["options"] = std::move(options);
    return body;
  }

  static std::string summary(const Json& plan) {
    const std::vector<std::string> out = texts(field(plan, "left_out"));
    const std::string rest = out.empty() ? "" : "; left as before: " + join(out, ", ");
    return field(plan, "nothing") == true
               ? fmt::format("nothing to do{}: {} as they shall be{}", out.empty() ? "" : " now",
                             number(field(plan, "unchanged")) == 1
                                 ? "1 node is"
                                 : fmt::format("{} nodes are", number(field(plan, "unchanged"))),
                             rest)
               : "plan: " + clean(text(plan, "title")) + rest;
  }

  std::string file_, reader_ = "auto", max_unavailable_, timeout_;
  std::optional<int64_t> revision_, max_failures_;
  bool prune_ = false, records_ = false, outage_ = false, force_ = false, own_machine_ = false;
};

class PlanCommand final : public FleetPlan {
 public:
  PlanCommand() : FleetPlan("plan", "Show what would be done to make a file true") {
    details =
        "Without -f: what is missing to what the records say. The plan is kept for a day;\n"
        "clusterctl apply ID does exactly that, unless a node it concerns was changed meanwhile.\n"
        "Exit codes: 0 nothing to do, 2 there is something to do, 3 it cannot be planned.\n"
        "Examples: clusterctl plan -f .        clusterctl plan --to-revision 12";
  }
  void options(Options& o) override { source_options(o); }

  Result<int> run(Session& session) override {
    if (auto ok = check_sources(true); !ok) return fail(ok.error());
    auto body = request(session);
    if (!body) return plan_error(session, body.error());
    auto plan = session.call("POST", "/v1/plans", std::move(*body));
    if (!plan) return plan_error(session, plan.error());
    show(session, *plan);
    return field(*plan, "nothing") == true ? kExitOk : kExitChanges;
  }

 private:
  static void show(Session& session, const Json& plan) {
    const std::string id = text(plan, "id");
    if (session.structured()) return session.data(plan);
    if (session.names_only()) {
      if (!id.empty()) session.line(id);
      return;
    }
    session.terminal.out(difference_text(plan));
    session.line(summary(plan));
    if (!id.empty()) session.next(fmt::format("clusterctl apply {}", id));
  }

  // Who cannot be asked has no plan to be wrong; everything else is an error of the plan.
  static Result<int> plan_error(Session& session, const Error& error) {
    const int code = exit_code(error.code);
    if (code != kExitRefused && code != kExitUsage) return fail(error);
    print_error(session.terminal, error, session.requested_nodes, session.color);
    return kExitPlanError;
  }
};

class Apply final : public FleetPlan {
 public:
  Apply() : FleetPlan("apply", "Make a file true: nodes, globals, and the work that follows") {
    details =
        "All records change in one step or none does; then nodes are commissioned, updated and so "
        "on, one job after\n"
        "the other, and the command stays attached. Fields that the file does not name stay; "
        "variables of a node are\n"
        "exactly those of the file. Nodes that it does not have are listed and left alone unless "
        "--prune is given.\n"
        "A second time there is nothing to do. docs/apply.md has the format.\n"
        "Exit codes: 0 done or nothing to do, 1 a job failed, 65 refused: nothing was changed.\n"
        "Examples: clusterctl apply -f .       clusterctl inventory export | clusterctl apply -f -";
  }
  void options(Options& o) override {
    o.argument("PLAN", id_, "id of a plan that clusterctl plan has shown", false);
    source_options(o);
    o.flag("--plan", plan_, "only show what would be done");
    o.flag("--detach", detach_, "do not wait for the jobs: print their ids");
    o.flag("-y,--yes", yes_, "do not ask");
  }

  Result<int> run(Session& session) override {
    if (id_.empty()) {
      if (auto ok = check_sources(false); !ok) return fail(ok.error());
    } else if (!file_.empty() || revision_) {
      return fail(Code::kInvalid, "usage", "a plan is applied as it is: leave -f and the like out",
                  "clusterctl apply " + id_);
    }
    if (!id_.empty()) return apply(session, id_);
    auto body = request(session);  // a mistake in the file comes before what can be asked
    if (!body) return refused(body.error());
    if (!plan_ && !yes_ && !session.terminal.can_ask()) {
      return fail(Code::kInvalid, "usage",
                  "this needs a confirmation and there is no terminal to ask on",
                  "give --yes, or look first with clusterctl plan");
    }
    if (plan_) (*body)["dry_run"] = true;
    auto plan = session.call("POST", "/v1/plans", std::move(*body));
    if (!plan) return refused(plan.error());
    const bool nothing = field(*plan, "nothing") == true;
    if (session.structured()) {
      if (plan_ || nothing) session.data(*plan);
    } else if (!session.names_only()) {
      (plan_ || nothing) ? session.terminal.out(difference_text(*plan))
                         : session.terminal.err(difference_text(*plan));
      (plan_ || nothing) ? session.line(summary(*plan)) : session.note(summary(*plan));
    }
    if (plan_ || nothing) return kExitOk;
    if (!yes_ && !session.terminal.confirm("Apply this?")) {
      session.note("nothing was done");
      return kExitRefused;
    }
    return apply(session, text(*plan, "id"));
  }

 private:
  static constexpr int kTries = 5;

  // A mistake in the file is no mistake in the command.
  static tl::unexpected<Error> refused(Error error) {
    if (exit_code(error.code) == kExitUsage) error.code = Code::kRefused;
    return fail(std::move(error));
  }

  // Applying a plan twice answers the same, so an answer lost on the way can be asked for again.
  static Result<Json> send(Session& session, const std::string& id) {
    const std::string path = "/v1/plans/" + client::escape(id) + "/apply";
    auto answer = session.call("POST", path, Json::object());
    for (int i = 1; i < kTries && !answer && answer.error().reason == "connection_lost"; ++i) {
      session.timer.sleep(std::chrono::milliseconds{500});
      answer = session.call("POST", path, Json::object());
    }
    return answer;
  }

  Result<int> apply(Session& session, const std::string& id) {
    auto answer = send(session, id);
    if (!answer) return fail(answer.error());
    const Json& jobs = field(*answer, "jobs");
    if (!session.structured() && !session.names_only())
      session.note(fmt::format("applied; revision {}", number(field(*answer, "revision"))));
    if (detach_ || jobs.empty()) return say(session, *answer);
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!session.names_only())
        session.note(
            fmt::format("step {} of {}: {}", i + 1, jobs.size(), clean(text(jobs[i], "title"))));
      auto code = attach(session, text(jobs[i], "id"));
      if (!code && i + 1 < jobs.size())
        session.note(
            "the steps after it are not begun; what is done is left out by the next apply");
      if (!code || *code != kExitOk) return code;
    }
    return kExitOk;
  }

  static Result<int> say(Session& session, const Json& answer) {
    if (session.structured()) {
      session.data(answer);
      return kExitOk;
    }
    for (const Json& job : field(answer, "jobs")) {
      const std::string id = text(job, "id");
      session.line(session.names_only() ? id : fmt::format("job {}: {}", id, text(job, "title")));
    }
    if (field(answer, "jobs").empty() && !session.names_only()) session.line("done");
    return kExitOk;
  }

  std::string id_;
  bool plan_ = false, detach_ = false, yes_ = false;
};

class RevisionLs final : public Command {
 public:
  RevisionLs() : Command("ls", "List the changes of what is wanted, the newest first") {
    details =
        "Each accepted change of a node's spec or of the globals is one. Values of secrets are not "
        "kept.\n"
        "clusterctl plan --to-revision N shows what going back would do, clusterctl apply "
        "--to-revision N does it.";
  }
  void options(Options& o) override { o.number("--limit", "N", limit_, "at most so many"); }
  Result<int> run(Session& session) override {
    auto answer = session.get_some("/v1/revisions", {}, "revisions", limit_);
    if (!answer) return fail(answer.error());
    const Json& list = field(*answer, "revisions");
    if (session.structured()) {
      session.data(*answer);
      return kExitOk;
    }
    Table table({"REVISION", "TIME", "BY", "NODES", "GLOBALS", "WHAT"});
    for (const Json& r : list) {
      const Json& nodes = field(r, "nodes");
      const size_t n = field(nodes, "added").size() + field(nodes, "changed").size() +
                       field(nodes, "removed").size();
      if (session.names_only()) session.line(text(r, "revision"));
      table.add({text(r, "revision"), short_time(field(r, "time")), text(r, "by"),
                 std::to_string(n), std::to_string(field(r, "globals").size()), text(r, "what")});
    }
    if (!session.names_only()) session.terminal.out(session.rendered(table));
    return kExitOk;
  }

 private:
  std::optional<int64_t> limit_;
};

}  // namespace

CommandPtr make_plan() {
  return std::make_unique<PlanCommand>();
}
CommandPtr make_apply() {
  return std::make_unique<Apply>();
}
Noun revision_noun() {
  Noun noun{"revision", "Numbered changes of what is wanted", {}, {}, nullptr};
  noun.commands.push_back(std::make_unique<RevisionLs>());
  return noun;
}

}  // namespace clusterctl::cli
