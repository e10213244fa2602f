#include <fmt/format.h>

#include "base/strings.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/filters.h"
#include "cli/job_control.h"
#include "cli/job_view.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/watch.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {
namespace {

std::string path_of(const std::string& id) {
  return "/v1/jobs/" + client::escape(id);
}

std::string nodes_of(const Json& job) {
  std::vector<std::string> names;
  for (const Json& node : field(job, "nodes")) names.push_back(text(node, "name"));
  if (names.size() > 4)
    return join({names.begin(), names.begin() + 3}, ",") + fmt::format(" +{}", names.size() - 3);
  return join(names, ",");
}

// The last column: what went wrong, or why it does not move.
std::string standing_still(const Json& job) {
  const std::string error = text(job, "error");
  return error.empty() ? waiting_line(job) : error;
}

const std::vector<std::string> kJobStates{"queued", "running",   "paused",     "succeeded",
                                          "failed", "cancelled", "interrupted"};
const std::vector<std::string> kJobKinds{
    "activate", "check",  "commission", "decommission",      "demote",           "drain",
    "observe",  "pause",  "promote",    "maintenance-enter", "maintenance-exit", "reboot",
    "replace",  "update", "verify"};
constexpr int64_t kUsualJobs = 100;
constexpr int64_t kMostJobs = 1000000;  // more than any daemon keeps

const std::vector<Filter>& job_filters() {
  static const std::vector<Filter> all{{"state", "state", kJobStates},
                                       {"kind", "kind", kJobKinds},
                                       {"node", "node", {}},
                                       {"by", "", {}, {"initiator"}}};
  return all;
}

class JobLs final : public Command {
 public:
  JobLs() : Command("ls", "List jobs, the newest first") {
    aliases = {"list"};
    details =
        "Columns: ID (prefixes of at least 4 characters, \"last\" and \"active\" are understood), "
        "KIND,\n"
        "STATE (queued, running, paused, succeeded, failed, cancelled, interrupted), NODES, "
        "STARTED, TOOK,\n"
        "and ERROR with the one line that says why, or for what it waits.\n"
        "Filters: state, kind, node, by (who asked, as job inspect says it); all that are given "
        "must hold.\n"
        "Example: clusterctl job ls --filter state=failed --filter node=n4";
  }
  void options(Options& o) override {
    o.list("--filter", "KEY=VALUE", filters_,
           "only jobs for which this holds; several are combined")
        .suggestions = filter_words(job_filters());
    o.value("--state", "STATE", state_, "the same as --filter state=STATE").choices = kJobStates;
    o.value("--kind", "KIND", kind_, "the same as --filter kind=KIND").choices = kJobKinds;
    o.value("--node", "NODE", node_, "the same as --filter node=NODE");
    o.number("--limit", "N", limit_, "at most so many; default 100");
    o.flag("-w,--watch", watch_, "show the list again when it has changed, until Ctrl-C");
  }
  Result<int> run(Session& session) override {
    std::vector<std::string> given = filters_;
    for (const auto& [key, value] :
         {std::pair{"state=", state_}, {"kind=", kind_}, {"node=", node_}}) {
      if (!value.empty()) given.push_back(key + value);
    }
    const auto filters = Filters::parse(job_filters(), given);
    if (!filters) return fail(filters.error());
    const auto look = [&] { return shown(session, *filters); };
    if (watch_) return watch(session, look);
    auto out = look();
    if (!out) return fail(out.error());
    session.terminal.out(*out);
    return kExitOk;
  }

 private:
  Result<std::string> shown(Session& session, const Filters& filters) {
    // What is compared here has to be searched for among all that are kept.
    auto answer =
        session.get_some("/v1/jobs", filters.query(), "jobs", filters.here() ? kMostJobs : limit_);
    if (!answer) return fail(answer.error());
    Json jobs = filters.of(field(*answer, "jobs"));
    const auto most = static_cast<size_t>(limit_.value_or(kUsualJobs));
    if (filters.here() && jobs.size() > most)
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(most), jobs.end());
    if (session.structured()) return session.document(jobs);
    std::string ids;
    Table table({"ID", "KIND", "STATE", "NODES", "STARTED", "TOOK", "ERROR"});
    for (const Json& job : jobs) {
      ids += text(job, "id") + "\n";
      table.add({text(job, "id"), text(job, "kind"), text(job, "state"), nodes_of(job),
                 short_time(field(job, "started")),
                 duration(field(job, "started"), field(job, "ended")), standing_still(job)});
    }
    return session.names_only() ? ids : session.rendered(table);
  }

  std::vector<std::string> filters_;
  std::string state_, kind_, node_;
  std::optional<int64_t> limit_;
  bool watch_ = false;
};

class JobInspect final : public Command {
 public:
  JobInspect() : Command("inspect", "What a job did, stage by stage and node by node") {
    aliases = {"get", "show"};
    details =
        "\"last\" is the newest job, \"active\" the one that runs. Of a job that runs: what it "
        "does "
        "now, for how\n"
        "long, and since when nothing was heard of it. BUSY is the sum of a node's tasks. A reason "
        "that\n"
        "several nodes share is told once. Rows beyond 40 of the timeline: -o wide.";
  }
  void options(Options& o) override {
    o.argument("JOB", id_, "id, prefix of an id, last or active");
  }
  Result<int> run(Session& session) override {
    auto job = session.get(path_of(id_));
    if (!job) return fail(job.error());
    if (session.names_only()) {
      session.line(text(*job, "id"));
      return kExitOk;
    }
    auto timeline = timeline_of(session, text(*job, "id"));
    if (!timeline) return fail(timeline.error());
    if (session.structured()) {
      (*job)["timeline"] = std::move(*timeline);
      session.data(*job);
    } else {
      session.terminal.out(job_details(*job, *timeline, session.format == Format::kWide));
    }
    return kExitOk;
  }

 private:
  // A long job is read in several steps, so that no single question takes long.
  static Result<Json> timeline_of(Session& session, const std::string& id) {
    for (int i = 0; i < 100; ++i) {
      auto timeline = session.get(path_of(id) + "/timeline");
      if (!timeline && timeline.error().code == Code::kNotFound)
        return Json();  // an older daemon, or its log is no longer kept
      if (!timeline || field(*timeline, "complete") != false) return timeline;
    }
    return Json();
  }

  std::string id_;
};

class JobLogs final : public Command {
 public:
  JobLogs() : Command("logs", "Ansible's output of a job") {
    aliases = {"log"};
    details =
        "With -f until the job ends; the exit code is then the job's. Ctrl-C only stops reading.";
  }
  void options(Options& o) override {
    o.argument("JOB", id_, "id, prefix of an id, last (default) or active", false);
    o.flag("-f,--follow", follow_, "go on until the job ends");
  }
  Result<int> run(Session& session) override {
    if (id_.empty()) id_ = "last";
    return follow_ ? follow(session) : print(session);
  }

 private:
  // What nodes wrote may hold escape sequences: a terminal never gets them, a file gets the text as
  // it is.
  static void write(Session& session, std::string_view piece) {
    session.terminal.out(session.terminal.can_redraw() ? clean_lines(piece) : std::string(piece));
  }

  Result<int> print(Session& session) {
    std::string line;
    const client::Request request{"GET", path_of(id_) + "/log", {}, std::nullopt, {}};
    auto done = session.rest.stream(
        request,
        [&](std::string_view piece) {
          line += piece;
          if (const size_t end = line.rfind('\n');
              end != std::string::npos || line.size() > (1 << 20)) {
            const size_t whole = end == std::string::npos ? line.size() : end + 1;
            write(session, std::string_view(line).substr(0, whole));
            line.erase(0, whole);
          }
          return true;
        },
        [] { return true; });
    if (!done) return fail(done.error());
    write(session, line);
    return kExitOk;
  }

  Result<int> follow(Session& session) {
    auto job = session.get(path_of(id_));  // "last" must not become another job after a reconnect
    if (!job) return fail(job.error());
    const std::string id = text(*job, "id");
    std::string state, error;
    client::Follow what;
    what.request.path = path_of(id) + "/log";
    what.request.query = {{"follow", "true"}};
    what.on_message = [&](const client::SseMessage& m) {
      const auto data = parse_json_object(m.data, "log");
      if (!data) return true;
      if (m.event == "log") {
        const Json& piece = field(*data, "text");
        if (!piece.is_string()) return true;
        std::string lines = piece.get<std::string>();
        const bool partial = field(*data, "partial") == true;  // of a long line
        if (!lines.empty() && lines.back() != '\n' && !partial) lines += '\n';
        write(session, lines);
      }
      if (m.event != "end") return true;
      state = text(*data, "state");
      error = text(*data, "error");
      return false;
    };
    session.terminal.watch_interrupts(true);
    what.keep_going = [&] {
      return !session.terminal.interrupted() && !session.terminal.nobody_reads();
    };
    what.on_lost = [&] { session.note("connection lost, reconnecting"); };
    const auto ended = client::follow(session.rest, session.timer, std::move(what));
    session.terminal.watch_interrupts(false);
    if (!ended) return fail(ended.error());
    if (!*ended && session.terminal.nobody_reads()) return kExitOk;
    if (!*ended) {
      session.note(fmt::format("\ndetached; clusterctl job logs -f {} follows it again", id));
      return kExitDetached;
    }
    if (state == "succeeded") return kExitOk;
    return fail(Code::kJobFailed, "job_failed",
                fmt::format("job {} {}{}{}", id, state, error.empty() ? "" : ": ", error),
                "clusterctl job inspect " + id);
  }

  std::string id_;
  bool follow_ = false;
};

class JobWait final : public Command {
 public:
  JobWait() : Command("wait", "Watch a job until it ends; the exit code is the job's") {
    details = "Ctrl-C only stops watching.";
  }
  void options(Options& o) override {
    o.argument("JOB", id_, "id, prefix of an id, last (default) or active", false);
  }
  Result<int> run(Session& session) override { return attach(session, id_.empty() ? "last" : id_); }

 private:
  std::string id_;
};

}  // namespace

Noun job_noun() {
  Noun noun{"job", "The work: what runs, what ran, and how it ended", {"jobs"}, {}, nullptr};
  noun.commands.push_back(std::make_unique<JobLs>());
  noun.commands.push_back(std::make_unique<JobInspect>());
  noun.commands.push_back(std::make_unique<JobLogs>());
  noun.commands.push_back(std::make_unique<JobWait>());
  for (CommandPtr& command : make_job_controls()) noun.commands.push_back(std::move(command));
  return noun;
}

}  // namespace clusterctl::cli
