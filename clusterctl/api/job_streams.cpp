// The log and the task events of a job: replayed from the start or a cursor, then followed until
// the job ends. What is read are the files of the run directories; nothing is held in memory
// between two steps, so any number of followers costs nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "api/resources.h"
#include "base/strings.h"
#include "job/job_json.h"

namespace clusterctl::api {
namespace {

using controller::Controller;
using std::chrono::milliseconds;

constexpr size_t kStep = 64 << 10;
constexpr size_t kMaxLine = 16 << 20;  // of events: longer ones do not exist
constexpr milliseconds kPoll{200};

// "<run>:<number>"; number counts bytes or lines, "0" and "" are the beginning.
struct Cursor {
  std::string run;
  uint64_t position = 0;

  static Result<Cursor> parse(const std::string& text) {
    Cursor c;
    if (text.empty()) return c;
    const size_t colon = text.find(':');
    const char* end = text.data() + text.size();
    const char* begin = colon == std::string::npos ? end : text.data() + colon + 1;
    const auto [p, ec] = std::from_chars(begin, end, c.position);
    if (colon == 0 || begin == end || ec != std::errc() || p != end) {
      return fail(Code::kInvalid, "bad_cursor",
                  fmt::format("\"{}\" is no position", one_line(text)),
                  "it is written <run>:<number>");
    }
    c.run = text.substr(0, colon);
    return c;
  }
};

// What is at `offset`: at most `limit` bytes, "" when nothing is.
std::string read_at(const fs::path& file, uint64_t offset, size_t limit) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  std::string out(limit, '\0');
  const ssize_t n = ::pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

// Whole lines at `offset`; the last one of a finished file may lack its end.
std::string read_lines(const fs::path& file, uint64_t offset, bool finished) {
  for (size_t limit = kStep;; limit *= 4) {
    std::string out = read_at(file, offset, limit);
    const size_t end = out.rfind('\n');
    if (end != std::string::npos) {
      out.resize(end + 1);
      return out;
    }
    const bool more = out.size() == limit;
    if (!more) return finished ? out : "";
    if (limit >= kMaxLine) return out;
  }
}

// How much of a text is not the beginning of a character that goes on behind its end.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xc0) == 0x80) continue;  // inside a character
    const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

// Whole lines, or, of a line that is longer than a step, a piece: so a line of any length costs no
// more memory than a short one.
std::string read_pieces(const fs::path& file, uint64_t offset, bool finished) {
  std::string out = read_at(file, offset, kStep);
  const size_t end = out.rfind('\n');
  if (end != std::string::npos) {
    out.resize(end + 1);
  } else if (out.size() == kStep) {
    out.resize(whole_characters(out));
  } else if (!finished) {
    out.clear();
  }
  return out;
}

// Walks over the runs of a job in order. Subclasses say what a file's new content becomes.
class RunWalker : public StreamSource {
 public:
  RunWalker(Controller& c, std::string job, std::string file, Cursor from, bool follow)
      : c_(c),
        job_(std::move(job)),
        file_(std::move(file)),
        from_(std::move(from)),
        follow_(follow) {}

  StreamStep next() override {
    for (;;) {
      const auto job = c_.current(job_);
      if (!job) return StreamStep::end();
      const job::StageStatus* stage = find_stage(*job);
      if (!stage) {
        if (!follow_) return StreamStep::end();
        if (!job::is_final(job->state)) return StreamStep::idle(kPoll);
        return StreamStep::end(end_text(*job));
      }
      if (run_ != stage->run) enter(*stage, *job);
      if (!announced_) {
        announced_ = true;
        if (std::string text = announce(*stage, *job); !text.empty())
          return StreamStep::data(std::move(text));
      }
      const bool finished = job::is_final(stage->state);
      std::string lines = read(c_.run_dir(run_) / file_, offset_, finished);
      if (!lines.empty()) {
        offset_ += lines.size();
        std::string text = render(*stage, lines, finished);
        if (text.empty()) continue;  // all of it lies before the cursor
        return StreamStep::data(std::move(text));
      }
      if (!finished && follow_) return StreamStep::idle(kPoll);
      done_ = true;
    }
  }

 protected:
  virtual std::string announce(const job::StageStatus&, const job::Job&) { return ""; }
  virtual std::string read(const fs::path& file, uint64_t offset, bool finished) const {
    return read_pieces(file, offset, finished);
  }
  virtual std::string render(const job::StageStatus& stage, const std::string& lines,
                             bool finished) = 0;
  virtual void skip_to(uint64_t position) = 0;
  virtual std::string end_text(const job::Job&) { return ""; }

  const std::string& run() const { return run_; }
  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset) { offset_ = offset; }

 private:
  // The stage being read, or the next one with a run after it.
  const job::StageStatus* find_stage(const job::Job& job) const {
    bool after = run_.empty() && from_.run.empty();
    for (const job::StageStatus& stage : job.stages) {
      if (stage.run.empty()) continue;
      if (after) return &stage;
      const bool here = stage.run == (run_.empty() ? from_.run : run_);
      if (here && !done_) return &stage;
      after = here;
    }
    return nullptr;
  }

  void enter(const job::StageStatus& stage, const job::Job&) {
    run_ = stage.run;
    offset_ = 0;
    done_ = announced_ = false;
    skip_to(run_ == from_.run ? from_.position : 0);
  }

  Controller& c_;
  std::string job_, file_;
  Cursor from_;
  bool follow_;
  std::string run_;
  uint64_t offset_ = 0;
  bool done_ = false, announced_ = false;
};

Json ending(const job::Job& job) {
  return {{"state", to_word(job.state)}, {"error", job.error}};
}

// The text as it was printed, for `GET …/log` without follow.
class PlainLog : public RunWalker {
 public:
  using RunWalker::RunWalker;

 protected:
  std::string render(const job::StageStatus&, const std::string& lines, bool) override {
    return lines;
  }
  void skip_to(uint64_t position) override { set_offset(position); }
};

class FollowedLog : public RunWalker {
 public:
  using RunWalker::RunWalker;

 protected:
  std::string render(const job::StageStatus&, const std::string& lines, bool finished) override {
    Json data{{"run", run()}, {"text", lines}};
    const bool piece = lines.back() != '\n' && !(finished && lines.size() < kStep - 3);
    if (piece) data["partial"] = true;
    return sse_event(fmt::format("{}:{}", run(), offset()), "log", dump_json(data));
  }
  void skip_to(uint64_t position) override { set_offset(position); }
  std::string end_text(const job::Job& job) override {
    return sse_event("", "end", dump_json(ending(job)));
  }
};

// Task events with `run` and `stage` added: one JSON a line, or as SSE.
class TaskEvents : public RunWalker {
 public:
  TaskEvents(Controller& c, std::string job, Cursor from, bool follow)
      : RunWalker(c, std::move(job), "events.jsonl", std::move(from), follow), sse_(follow) {}

 protected:
  std::string announce(const job::StageStatus& stage, const job::Job& job) override {
    if (!sse_) return "";
    Json nodes = Json::array();
    for (const std::string& id : stage.nodes) {
      if (const job::NodeOutcome* n = job.outcome(id)) nodes.push_back(n->name);
    }
    return sse_event("", "stage",
                     dump_json({{"name", stage.def.name},
                                {"run", stage.run},
                                {"state", to_word(stage.state)},
                                {"nodes", nodes}}));
  }

  std::string read(const fs::path& file, uint64_t offset, bool finished) const override {
    return read_lines(file, offset, finished);
  }

  std::string render(const job::StageStatus& stage, const std::string& lines, bool) override {
    std::string out;
    for (const std::string& line : split(lines, '\n', true)) {
      if (++line_ <= skip_) continue;
      auto event = parse_json(line, "event");
      if (!event || !event->is_object()) continue;
      (*event)["run"] = stage.run;
      (*event)["stage"] = stage.def.name;
      out += sse_ ? sse_event(fmt::format("{}:{}", stage.run, line_), "task", dump_json(*event))
                  : dump_json(*event) + "\n";
    }
    return out;
  }

  void skip_to(uint64_t position) override {
    skip_ = position;
    line_ = 0;
  }
  std::string end_text(const job::Job& job) override {
    return sse_event("", "end", dump_json(ending(job)));
  }

 private:
  bool sse_;
  uint64_t line_ = 0, skip_ = 0;
};

struct StreamRequest {
  std::string job;
  Cursor from;
  bool follow = false;
};

Result<StreamRequest> read_request(const Controller& c, const Request& r) {
  StreamRequest out;
  const auto job = c.find_job(r.param("id"));
  if (!job) return fail(job.error());
  out.job = (*job)->id;
  const auto follow = r.query_bool("follow");
  if (!follow) return fail(follow.error());
  out.follow = *follow;
  std::string since = r.query_string("since");
  if (since.empty()) since = std::string(r.headers.get("Last-Event-ID").value_or(""));
  auto cursor = Cursor::parse(since);
  if (!cursor) return fail(cursor.error());
  const auto& stages = (*job)->stages;
  const bool known = cursor->run.empty() ||
                     std::any_of(stages.begin(), stages.end(),
                                 [&](const job::StageStatus& s) { return s.run == cursor->run; });
  if (!known)
    return fail(Code::kInvalid, "bad_cursor",
                fmt::format("job {} has no run \"{}\"", out.job, one_line(cursor->run)));
  out.from = std::move(*cursor);
  return out;
}

}  // namespace

void add_job_stream_routes(Router& router, Controller& c) {
  router.get("/v1/jobs/{id}/log",
             [&c](const Request& r) -> Result<Response> {
               if (auto gone = log_expired(c, r.param("id"))) return std::move(*gone);
               auto q = read_request(c, r);
               if (!q) return fail(q.error());
               if (q->follow)
                 return Response::sse(
                     std::make_unique<FollowedLog>(c, q->job, "output.log", q->from, true));
               return Response::streamed(
                   "text/plain; charset=utf-8",
                   std::make_unique<PlainLog>(c, q->job, "output.log", q->from, false));
             },
             {"follow", "since"});
  router.get("/v1/jobs/{id}/events",
             [&c](const Request& r) -> Result<Response> {
               if (auto gone = log_expired(c, r.param("id"))) return std::move(*gone);
               auto q = read_request(c, r);
               if (!q) return fail(q.error());
               auto source = std::make_unique<TaskEvents>(c, q->job, q->from, q->follow);
               if (q->follow) return Response::sse(std::move(source));
               return Response::streamed("application/x-ndjson", std::move(source));
             },
             {"follow", "since"});
}

}  // namespace clusterctl::api
