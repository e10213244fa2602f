#include "cli/attach.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/job_view.h"
#include "cli/progress.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRedrawEvery{250};
constexpr milliseconds kOutagePatience{60000};

// Puts progress on the terminal: appended lines, or a block that is redrawn under them.
class View {
 public:
  View(Session& session, Progress& progress) : session_(session), progress_(progress) {
    // With -o json or yaml standard output belongs to the document at the end.
    to_err_ = session.structured() || session.names_only();
    redraw_ = !to_err_ && session.terminal.can_redraw();
  }
  ~View() { erase(); }

  void message(const client::SseMessage& m) {
    const auto lines = progress_.feed(m, session_.timer.now());
    // The block shows the rest.
    const bool keep = !redraw_ || m.event == "stage" || m.event == "state";
    if (!keep) return draw(false);
    for (const std::string& line : lines) append(line);
    draw(true);
  }

  void append(const std::string& line) {
    if (session_.quiet) return;
    erase();
    if (to_err_) {
      session_.note(line);
    } else {
      session_.line(line);
    }
  }

  void draw(bool at_once) {
    const auto now = session_.timer.now();
    if (!redraw_ || session_.quiet || (!at_once && now - drawn_at_ < kRedrawEvery)) return;
    drawn_at_ = now;
    erase();
    for (const std::string& line : progress_.block(
             session_.terminal.width() - 1, std::min(session_.terminal.height() - 2, 40), now)) {
      session_.line(line);
      ++drawn_;
    }
  }

  void erase() {
    if (drawn_ > 0) session_.terminal.out(fmt::format("\x1b[{}A\x1b[J", drawn_));
    drawn_ = 0;
  }

 private:
  Session& session_;
  Progress& progress_;
  bool to_err_ = false, redraw_ = false;
  int drawn_ = 0;
  milliseconds drawn_at_{-1000};
};

// Ctrl-C is ours only as long as this lives.
class Watch {
 public:
  explicit Watch(Terminal& t) : terminal_(t) { terminal_.watch_interrupts(true); }
  ~Watch() { terminal_.watch_interrupts(false); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Terminal& terminal_;
};

// Reads the job although the daemon may just be starting again.
Result<Json> get_patiently(Session& session, const std::string& path) {
  const auto begin = session.timer.now();
  for (;;) {
    auto job = session.get(path);
    if (job || job.error().code != Code::kUnavailable || session.terminal.interrupted() ||
        session.timer.now() - begin >= kOutagePatience) {
      return job;
    }
    session.timer.sleep(milliseconds{500});
  }
}

int detached(Session& session, const std::string& id) {
  session.terminal.err(fmt::format(
      "\ndetached; the job goes on\n"
      "hint: clusterctl job wait {} watches it again, clusterctl job cancel {} stops it\n",
      id, id));
  return kExitDetached;
}

Result<int> follow_job(Session& session, const std::string& id, const std::string& path,
                       const Json& job) {
  std::vector<std::string> names;
  for (const Json& node : field(job, "nodes")) names.push_back(text(node, "name"));
  Progress progress(names);
  View view(session, progress);
  view.append(fmt::format("job {}: {}", id, text(job, "title")));
  const std::string state = text(job, "state");
  if (const std::string waits = waiting_line(job); !waits.empty() && state == "queued")
    view.append("queued: " + waits);
  if (state == "paused")
    view.append(fmt::format("paused; clusterctl job resume {} lets it go on", id));
  Watch watch(session.terminal);
  client::Follow what;
  what.request.path = path + "/events";
  what.request.query = {{"follow", "true"}};
  what.give_up_after = kOutagePatience;
  what.on_message = [&](const client::SseMessage& m) {
    view.message(m);
    return !progress.ended();
  };
  what.keep_going = [&] {
    view.draw(false);
    return !session.terminal.interrupted();
  };
  what.on_lost = [&] { view.append("connection lost, reconnecting"); };
  const auto ended = client::follow(session.rest, session.timer, std::move(what));
  view.erase();
  if (!ended) {
    Error error = ended.error();
    error.hint = fmt::format("the job goes on; clusterctl job wait {} watches it again", id);
    return fail(std::move(error));
  }
  if (!*ended) return detached(session, id);
  auto final_job = get_patiently(session, path);
  if (!final_job) return fail(final_job.error());
  return conclude(session, *final_job);
}

// Which of the checked nodes can be commissioned now; the others are in service.
std::string after_check(Session& session, const std::vector<std::string>& names) {
  auto nodes = session.get_all("/v1/nodes", {}, "nodes");
  std::vector<std::string> free;
  for (const Json& node : nodes ? *nodes : Json::array()) {
    const std::string name = text(node, "name");
    const std::string lifecycle = text(field(node, "status"), "lifecycle");
    const bool is_free = lifecycle == "Unallocated" || lifecycle == "Decommissioned";
    if (is_free && std::find(names.begin(), names.end(), name) != names.end()) free.push_back(name);
  }
  if (nodes && free.empty())
    return "clusterctl node verify looks at the services of commissioned nodes";
  return "clusterctl node commission " + join(nodes ? free : names, " ");
}

std::string next_step(Session& session, const Json& job) {
  const std::string kind = text(job, "kind");
  std::vector<std::string> names;
  for (const Json& node : field(job, "nodes")) names.push_back(text(node, "name"));
  if (kind == "commission")
    return "clusterctl status shows the cluster, clusterctl node ls its nodes";
  if (kind == "decommission") {
    return fmt::format("clusterctl node rm {} forgets {}, clusterctl node commission uses {} again",
                       join(names, " "), names.size() == 1 ? "it" : "them",
                       names.size() == 1 ? "it" : "them");
  }
  if (kind == "drain" || kind == "pause")
    return "clusterctl node activate " + join(names, " ") + " gives work again";
  if (kind == "promote" || kind == "demote")
    return "clusterctl node ls shows the roles, clusterctl status the majorities";
  if (kind == "replace") {
    const std::vector<std::string> asked = texts(field(field(job, "request"), "nodes"));
    return fmt::format("clusterctl node rm {} forgets the one that left",
                       asked.empty() ? "OLD" : asked.front());
  }
  if (kind == "check") return after_check(session, names);
  return "clusterctl node ls";
}

}  // namespace

bool is_final_state(const std::string& state) {
  return state == "succeeded" || state == "failed" || state == "cancelled" ||
         state == "interrupted";
}

std::string waiting_line(const Json& job) {
  const Json& waiting = field(job, "waiting");
  const std::string state = text(job, "state");
  if (!waiting.is_object()) {
    return state == "paused" ? "paused since " + short_time(field(job, "paused")) : "";
  }
  const std::string holder = text(waiting, "job"), reason = text(waiting, "reason");
  std::string out = "waiting for job " + holder + " on " + text(waiting, "node");
  if (reason == "plan") out = "waiting for job " + holder + ", the step before it";
  if (reason == "managers") out = "waiting for job " + holder + ", which changes managers";
  if (reason == "parallel_runs") out = "waiting for a free place (jobs.max_parallel_runs)";
  const std::string since = short_time(field(waiting, "since"));
  return since.empty() ? out : out + " since " + since;
}

Result<int> conclude(Session& session, const Json& job) {
  const std::string id = text(job, "id");
  const std::string state = text(job, "state");
  const std::string took = duration(field(job, "started"), field(job, "ended"));
  if (session.structured()) {
    session.data(job);
  } else if (session.names_only()) {
    session.line(id);
  } else {
    session.terminal.out(outcome_table(job));
    session.line(fmt::format("job {} {}{}", id, state, took.empty() ? "" : " after " + took));
  }
  if (state == "succeeded") {
    session.next(next_step(session, job));
    return kExitOk;
  }
  const std::string cause = text(job, "error").empty() ? text(job, "reason") : text(job, "error");
  std::string hint = text(job, "hint");
  const std::string log = fmt::format("clusterctl job logs {} shows everything", id);
  return fail(Code::kJobFailed, text(job, "reason"),
              fmt::format("job {} {}{}{}", id, state, cause.empty() ? "" : ": ", cause),
              hint.empty() ? log : hint + "; " + log);
}

Result<int> attach(Session& session, const std::string& job_id) {
  auto job = session.get("/v1/jobs/" + client::escape(job_id));
  if (!job) return fail(job.error());
  const std::string id = text(*job, "id");
  if (is_final_state(text(*job, "state"))) return conclude(session, *job);
  return follow_job(session, id, "/v1/jobs/" + client::escape(id), *job);
}

}  // namespace clusterctl::cli
