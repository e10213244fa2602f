#include "cli/job_control.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/attach.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

std::string path_of(const std::string& id, std::string_view action) {
  return fmt::format("/v1/jobs/{}/{}", client::escape(id), action);
}

Result<int> say(Session& session, const Json& job, std::string_view what) {
  const std::string id = text(job, "id");
  if (session.structured()) {
    session.data(job);
  } else {
    session.line(session.names_only() ? id : fmt::format("job {} {}", id, what));
    session.next("clusterctl job wait " + id);
  }
  return kExitOk;
}

class JobCancel final : public Command {
 public:
  JobCancel() : Command("cancel", "Stop a job at its next task") {
    details =
        "What it began is cleaned up; clusterctl job wait shows how that ends. Should the cleanup "
        "itself hang: --now\n"
        "once more ends that as well, and the nodes are marked as not cleaned.";
  }
  void options(Options& o) override {
    o.argument("JOB", id_, "id, prefix of an id, or active");
    o.flag("--now", now_, "do not wait for the running task: end Ansible at once");
  }
  Result<int> run(Session& session) override {
    Json body = Json::object();
    if (now_) body["now"] = true;
    auto job = session.call("POST", path_of(id_, "cancel"), std::move(body));
    if (!job) return fail(job.error());
    const bool ended = is_final_state(text(*job, "state"));
    if (!ended && now_ && putting_in_order(*job))
      session.note("it is putting nodes in order; --now once more ends that as well");
    return say(session, *job, ended ? "is cancelled" : "is being cancelled");
  }

 private:
  // Behind the planned stages: what undoes or cleans.
  static bool putting_in_order(const Json& job) {
    for (const Json& stage : field(job, "stages")) {
      const std::string name = text(stage, "name");
      const std::string state = text(stage, "state");
      const bool open = state == "running" || state == "prepared";
      if (open && (name == "cleanup" || name == "undo" || name == "restore") &&
          text(job, "kind") != "decommission")
        return true;
    }
    return false;
  }

  std::string id_;
  bool now_ = false;
};

class JobPause final : public Command {
 public:
  JobPause() : Command("pause", "Stop a running job before its next stage, or its next batch") {
    details =
        "The stage that runs is finished first; an update finishes its batch. A paused job keeps "
        "its nodes from other work and "
        "survives restarts;\n"
        "clusterctl job resume lets it go on, clusterctl job cancel ends it.";
  }
  void options(Options& o) override { o.argument("JOB", id_, "id, prefix of an id, or active"); }
  Result<int> run(Session& session) override {
    auto job = session.call("POST", path_of(id_, "pause"), Json::object());
    if (!job) return fail(job.error());
    return say(session, *job,
               text(*job, "state") == "paused" ? "is paused" : "pauses at its next gate");
  }

 private:
  std::string id_;
};

// What resume and retry share: the new job is watched unless told otherwise.
class Continue : public Command {
 public:
  using Command::Command;

 protected:
  void add_options(Options& o) {
    o.argument("JOB", id_, "id, prefix of an id, or last");
    o.flag("--plan", plan_, "only show which nodes and stages it would be");
    o.flag("--detach", detach_, "do not wait: print the job's id");
  }

  Result<Json> ask(Session& session, std::string_view action, Json body, bool dry_run) {
    if (dry_run) body["dry_run"] = true;
    return session.call("POST", path_of(id_, action), std::move(body));
  }

  static std::string matching(const Json& answer) {
    const auto names = texts(field(answer, "nodes"));
    return fmt::format("{} {}: {}", count(names.size(), "node"),
                       names.size() == 1 ? "matches" : "match", join(names, ", "));
  }

  static Result<int> show(Session& session, const Json& answer) {
    if (session.structured()) {
      session.data(answer);
      return kExitOk;
    }
    for (const std::string& name : texts(field(answer, "nodes"))) {
      if (session.names_only()) session.line(name);
    }
    if (session.names_only()) return kExitOk;
    session.line(matching(answer));
    for (const Json& stage : field(field(answer, "plan"), "stages")) {
      session.line(
          fmt::format("  {}: {}", text(stage, "name"), join(texts(field(stage, "nodes")), ", ")));
    }
    session.next("nothing was done; the same without --plan does it");
    return kExitOk;
  }

  Result<int> started(Session& session, const Json& job) {
    const std::string id = text(job, "id");
    session.warnings(job);
    if (!detach_) return attach(session, id);
    return say(session, job, text(job, "title"));
  }

  std::string id_;
  bool plan_ = false, detach_ = false;
};

class JobResume final : public Continue {
 public:
  JobResume() : Continue("resume", "Let a paused job go on, or go on from one that ended badly") {
    details =
        "A job that failed, was cancelled or interrupted is continued by a new one: the nodes that "
        "are not done, from the\n"
        "stage where each of them was, with the same variables. A node that was cleaned begins "
        "anew. What the old job left\n"
        "running on the nodes is ended first. Secret variables are kept for 7 days after the end "
        "for this; job inspect says until when.";
  }
  void options(Options& o) override { add_options(o); }
  Result<int> run(Session& session) override {
    auto answer = ask(session, "resume", Json::object(), plan_);
    if (!answer) return fail(answer.error());
    if (field(*answer, "plan").is_object()) return show(session, *answer);
    return started(session, *answer);
  }
};

class JobRetry final : public Continue {
 public:
  JobRetry() : Continue("retry", "Do the work of a job again on the nodes where it failed") {
    details =
        "A new job of the same kind, with the same variables. Says first how many nodes match, and "
        "asks (or --yes).\n"
        "Without --failed and --untouched: --failed.";
  }
  void options(Options& o) override {
    add_options(o);
    o.flag("--failed", failed_, "the nodes that failed, or on which the job was stopped");
    o.flag("--untouched", untouched_, "the nodes that the job had not come to");
    o.flag("-y,--yes", yes_, "do not ask");
  }
  Result<int> run(Session& session) override {
    if (!plan_ && !yes_ && !session.terminal.can_ask()) {
      return fail(Code::kInvalid, "usage",
                  "this needs a confirmation and there is no terminal to ask on",
                  "give --yes, or look first with --plan");
    }
    Json body{{"failed", failed_ || !untouched_}, {"untouched", untouched_}};
    auto preview = ask(session, "retry", body, true);
    if (!preview) return fail(preview.error());
    if (plan_) return show(session, *preview);
    session.note(matching(*preview));
    if (!yes_ && !session.terminal.confirm(
                     fmt::format("{} again?", text(field(*preview, "plan"), "title")))) {
      session.note("nothing was done");
      return kExitRefused;
    }
    auto job = ask(session, "retry", std::move(body), false);
    if (!job) return fail(job.error());
    return started(session, *job);
  }

 private:
  bool failed_ = false, untouched_ = false, yes_ = false;
};

}  // namespace

std::vector<CommandPtr> make_job_controls() {
  std::vector<CommandPtr> out;
  out.push_back(std::make_unique<JobCancel>());
  out.push_back(std::make_unique<JobPause>());
  out.push_back(std::make_unique<JobResume>());
  out.push_back(std::make_unique<JobRetry>());
  return out;
}

}  // namespace clusterctl::cli
