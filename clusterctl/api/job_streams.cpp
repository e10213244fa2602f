// The log and the task events of a job: replayed from the start or a cursor, then followed until
// the job ends. What is sent are the files of the run directories; a follower that is slow reads
// later and misses nothing.
#include <fmt/format.h>

#include <charconv>

#include "api/job_log.h"
#include "api/resources.h"
#include "base/strings.h"
#include "job/job_json.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

constexpr size_t kLongestText = 64 << 10;   // of a line of the log in one message
constexpr size_t kLongestEvent = 16 << 20;  // an event is only understood whole

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

// What is to be sent, and from where.
struct StreamRequest {
  std::shared_ptr<JobTails> tails;
  std::string job, file;
  Cursor from;
  bool follow = false;
};

// Walks over the runs of a job in order. Subclasses say what a file's new content becomes.
class RunWalker : public StreamSource {
 public:
  explicit RunWalker(StreamRequest request) : r_(std::move(request)) {}

  StreamStep next() override {
    if (!tail_) tail_ = r_.tails->get(r_.job, r_.file);
    for (;;) {
      const auto job = tail_->job();
      if (!job) return StreamStep::end();
      const job::StageStatus* stage = find_stage(*job);
      if (!stage) {
        if (!r_.follow) return StreamStep::end();
        if (std::string text = standing(*job); !text.empty())
          return StreamStep::data(std::move(text));
        if (!job::is_final(job->state)) return StreamStep::idle(tail_);
        return StreamStep::end(end_text(*job));
      }
      if (run_ != stage->run) enter(*stage);
      if (!announced_) {
        announced_ = true;
        if (std::string text = announce(*stage, *job); !text.empty())
          return StreamStep::data(std::move(text));
      }
      const bool finished = job::is_final(stage->state);
      if (const auto chunk = next_chunk(*stage, finished)) {
        at_ = *chunk;
        if (chunk->text) return StreamStep::data(chunk->text);
        continue;  // all of it lies before the cursor
      }
      if (!finished && r_.follow) return StreamStep::idle(tail_);
      done_ = true;
    }
  }

 protected:
  virtual std::string announce(const job::StageStatus&, const job::Job&) { return ""; }
  // What is sent when the job stands between two stages.
  virtual std::string standing(const job::Job&) { return ""; }
  // What is sent for these lines, which begin after line `before` and end at byte `end`. The same
  // for everybody, unless own() says that this source leaves lines out.
  virtual Chunk render(const job::StageStatus& stage, const std::string& lines, uint64_t before,
                       uint64_t end) = 0;
  virtual bool own() const { return false; }
  virtual size_t longest() const { return kLongestText; }
  // Where to begin in a run for a cursor: byte, and in skip() whatever else.
  virtual uint64_t skip_to(uint64_t position) = 0;
  virtual std::string end_text(const job::Job&) { return ""; }

  const Chunk& at() const { return at_; }

 private:
  std::optional<Chunk> next_chunk(const job::StageStatus& stage, bool finished) {
    const bool shared = r_.follow && !own();
    if (const Chunk* known = shared ? tail_->find(run_, at_.offset) : nullptr) return *known;
    const std::string lines = tail_->read(run_, at_.offset, finished, longest());
    if (lines.empty()) return std::nullopt;
    Chunk chunk = render(stage, lines, at_.line, at_.offset + lines.size());
    chunk.offset = at_.offset + lines.size();
    if (shared) tail_->keep(run_, at_.offset, chunk);
    return chunk;
  }

  // The stage being read, or the next one with a run after it.
  const job::StageStatus* find_stage(const job::Job& job) const {
    bool after = run_.empty() && r_.from.run.empty();
    for (const job::StageStatus& stage : job.stages) {
      if (stage.run.empty()) continue;
      if (after) return &stage;
      const bool here = stage.run == (run_.empty() ? r_.from.run : run_);
      if (here && !done_) return &stage;
      after = here;
    }
    return nullptr;
  }

  void enter(const job::StageStatus& stage) {
    run_ = stage.run;
    done_ = announced_ = false;
    at_ = Chunk{nullptr, skip_to(run_ == r_.from.run ? r_.from.position : 0), 0};
  }

  const StreamRequest r_;
  std::shared_ptr<JobTail> tail_;
  std::string run_;
  Chunk at_;  // where the next one begins
  bool done_ = false, announced_ = false;
};

SharedText shared(std::string text) {
  return text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
}

Json ending(const job::Job& job) {
  return {{"state", to_word(job.state)}, {"error", job.error}};
}

// The text as it was printed, for `GET …/log` without follow.
class PlainLog final : public RunWalker {
 public:
  using RunWalker::RunWalker;

 protected:
  Chunk render(const job::StageStatus&, const std::string& lines, uint64_t, uint64_t) override {
    return {shared(lines), 0, 0};
  }
  uint64_t skip_to(uint64_t position) override { return position; }
};

// The same, followed; the end is a line of text.
class FollowedText final : public RunWalker {
 public:
  FollowedText(StreamRequest request, std::string (*last_line)(const job::Job&))
      : RunWalker(std::move(request)), last_line_(last_line) {}

 protected:
  Chunk render(const job::StageStatus&, const std::string& lines, uint64_t, uint64_t) override {
    return {shared(lines), 0, 0};
  }
  uint64_t skip_to(uint64_t position) override { return position; }
  std::string end_text(const job::Job& job) override { return last_line_(job); }

 private:
  std::string (*const last_line_)(const job::Job&);
};

class FollowedLog final : public RunWalker {
 public:
  using RunWalker::RunWalker;

 protected:
  Chunk render(const job::StageStatus& stage, const std::string& lines, uint64_t,
               uint64_t end) override {
    Json data{{"run", stage.run}, {"text", lines}};
    // A piece of a line that is longer than a message.
    if (lines.back() != '\n' && lines.size() + 3 >= kLongestText) data["partial"] = true;
    return {shared(sse_event(fmt::format("{}:{}", stage.run, end), "log", dump_json(data))), 0, 0};
  }
  uint64_t skip_to(uint64_t position) override { return position; }
  std::string end_text(const job::Job& job) override {
    return sse_event("", "end", dump_json(ending(job)));
  }
};

std::string stage_message(const job::StageStatus& stage, const job::Job& job) {
  std::map<std::string_view, std::string_view> names;
  for (const job::NodeOutcome& n : job.nodes) names[n.node] = n.name;
  Json nodes = Json::array();
  for (const std::string& id : stage.nodes) {
    if (const auto name = names.find(id); name != names.end()) nodes.push_back(name->second);
  }
  return sse_event("", "stage",
                   dump_json({{"name", stage.def.name},
                              {"run", stage.run},
                              {"state", to_word(stage.state)},
                              {"nodes", nodes}}));
}

// Task events with `run` and `stage` added: one JSON a line, or as SSE.
class TaskEvents final : public RunWalker {
 public:
  explicit TaskEvents(StreamRequest request) : RunWalker(request), sse_(request.follow) {}

 protected:
  std::string announce(const job::StageStatus& stage, const job::Job& job) override {
    return sse_ ? stage_message(stage, job) : "";
  }

  // Once when a pause begins, and once when it is over.
  std::string standing(const job::Job& job) override {
    const bool paused = job.state == job::State::kPaused;
    if (!sse_ || paused == paused_) return "";
    paused_ = paused;
    return sse_event("", "state", dump_json({{"state", to_word(job.state)}}));
  }

  Chunk render(const job::StageStatus& stage, const std::string& lines, uint64_t before,
               uint64_t) override {
    std::string out;
    uint64_t number = before;
    for (const std::string& line : split(lines, '\n', true)) {
      if (++number <= skip_) continue;
      auto event = parse_json(line, "event");
      if (!event || !event->is_object()) continue;
      (*event)["run"] = stage.run;
      (*event)["stage"] = stage.def.name;
      out += sse_ ? sse_event(fmt::format("{}:{}", stage.run, number), "task", dump_json(*event))
                  : dump_json(*event) + "\n";
    }
    return {shared(std::move(out)), 0, number};
  }

  bool own() const override { return at().line < skip_; }
  size_t longest() const override { return kLongestEvent; }
  uint64_t skip_to(uint64_t position) override {
    skip_ = position;
    return 0;
  }
  std::string end_text(const job::Job& job) override {
    return sse_event("", "end", dump_json(ending(job)));
  }

 private:
  const bool sse_;
  bool paused_ = false;
  uint64_t skip_ = 0;
};

Result<StreamRequest> read_request(const Controller& c, const std::shared_ptr<JobTails>& tails,
                                   const char* file, const Request& r) {
  StreamRequest out;
  const auto job = c.find_job(r.param("id"));
  if (!job) return fail(job.error());
  out.tails = tails;
  out.job = (*job)->id;
  out.file = file;
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

Response follow_text(std::shared_ptr<JobTails> tails, std::string job,
                     std::string (*last_line)(const job::Job&)) {
  StreamRequest request{std::move(tails), std::move(job), "output.log", {}, true};
  return Response::streamed("text/plain; charset=utf-8",
                            std::make_unique<FollowedText>(std::move(request), last_line));
}

void add_job_stream_routes(Router& router, Controller& c) {
  const auto tails = std::make_shared<JobTails>(c);
  router.get("/v1/jobs/{id}/log",
             [&c, tails](const Request& r) -> Result<Response> {
               if (auto gone = log_expired(c, r.param("id"))) return std::move(*gone);
               auto q = read_request(c, tails, "output.log", r);
               if (!q) return fail(q.error());
               if (q->follow) return Response::sse(std::make_unique<FollowedLog>(std::move(*q)));
               return Response::streamed("text/plain; charset=utf-8",
                                         std::make_unique<PlainLog>(std::move(*q)));
             },
             {"follow", "since"});
  router.get("/v1/jobs/{id}/events",
             [&c, tails](const Request& r) -> Result<Response> {
               if (auto gone = log_expired(c, r.param("id"))) return std::move(*gone);
               auto q = read_request(c, tails, "events.jsonl", r);
               if (!q) return fail(q.error());
               const bool follow = q->follow;
               auto source = std::make_unique<TaskEvents>(std::move(*q));
               if (follow) return Response::sse(std::move(source));
               return Response::streamed("application/x-ndjson", std::move(source));
             },
             {"follow", "since"});
}

}  // namespace clusterctl::api
