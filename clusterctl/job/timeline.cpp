#include "job/timeline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/time_json.h"

namespace clusterctl::job {
namespace {

constexpr size_t kMaxEntries = 24;
constexpr size_t kChunk = 1 << 20;
constexpr size_t kMaxLine = 8 << 20;
constexpr size_t kMaxWaiting = 20;  // names in an answer

Json between(const std::optional<Time>& from, const std::optional<Time>& to) {
  return from && to ? Json(std::max<int64_t>(0, (*to - *from).count())) : Json();
}

Json span_json(const ansible::ServiceSpan& s) {
  return {{"service", s.service},
          {"state", s.state},
          {"started", time_or_null(s.started)},
          {"ended", time_or_null(s.ended)},
          {"ms", between(s.started, s.ended)},
          {"busy_ms", s.busy_ms},
          {"tasks", s.tasks},
          {"changed", s.changed}};
}

Json current_json(const StageStatus& stage, const ansible::RunTimeline::Current& c, Time now) {
  Json names = Json::array();
  for (const std::string& host : c.waiting_for) {
    if (names.size() < kMaxWaiting) names.push_back(host);
  }
  return {{"stage", stage.def.name},
          {"play", c.play},
          {"service", c.service},
          {"task", c.task},
          {"since", time_or_null(c.since)},
          {"ms", between(c.since, now)},
          {"waiting", c.waiting_for.size()},
          {"waiting_for", names}};
}

// When the file was written last.
std::optional<Time> written(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return Time(
      std::chrono::milliseconds(info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000));
}

}  // namespace

Timelines::Entry& Timelines::read(const std::string& run,
                                  std::chrono::steady_clock::time_point until) {
  Entry& entry = entries_[run];
  entry.used = ++uses_;
  entry.complete = true;
  const Fd fd(::open((dirs_(run) / "events.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return entry;
  std::string buffer(kChunk, '\0');
  for (;;) {
    const ssize_t n =
        ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(entry.offset));
    if (n <= 0) return entry;
    std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    const size_t end = bytes.rfind('\n');
    if (end == std::string_view::npos) {  // a line that is longer, or not complete yet
      if (bytes.size() < buffer.size() || buffer.size() >= kMaxLine) return entry;
      buffer.resize(buffer.size() * 2);
      continue;
    }
    entry.offset += end + 1;
    for (size_t begin = 0; begin <= end;) {
      const size_t stop = bytes.find('\n', begin);
      entry.timeline.feed_line(bytes.substr(begin, stop - begin));
      begin = stop + 1;
    }
    if (std::chrono::steady_clock::now() >= until) {
      entry.complete = false;
      return entry;
    }
  }
}

Json Timelines::stage(const StageStatus& stage, const Job& job, const Entry& entry) const {
  Json out{{"name", stage.def.name},
           {"run", stage.run},
           {"state", to_word(stage.state)},
           {"started", time_or_null(stage.started)},
           {"ended", time_or_null(stage.ended)},
           {"ms", between(stage.started, stage.ended ? stage.ended : std::optional(clock_.now()))},
           {"events", entry.timeline.events()}};
  out["slowest"] = out["nodes"] = Json::array();
  for (const ansible::TaskSpan& t : entry.timeline.slowest())
    out["slowest"].push_back({{"service", t.service}, {"task", t.task}, {"ms", t.ms}});
  for (const NodeOutcome& n : job.nodes) {
    const auto host = entry.timeline.hosts().find(n.name);
    if (host == entry.timeline.hosts().end()) continue;
    Json services = Json::array();
    int64_t busy = 0;
    for (const ansible::ServiceSpan& s : host->second) {
      services.push_back(span_json(s));
      busy += s.busy_ms;
    }
    out["nodes"].push_back({{"name", n.name}, {"busy_ms", busy}, {"services", services}});
  }
  return out;
}

std::optional<Time> Timelines::last_sign(const StageStatus& stage) const {
  std::optional<Time> last = stage.started;
  for (const char* file : {"events.jsonl", "output.log"}) {
    const auto t = written(dirs_(stage.run) / file);
    if (t && (!last || *t > *last)) last = t;
  }
  return last;
}

Json Timelines::of(const Job& job) {
  const Time now = clock_.now();
  Json out{{"job", job.id},
           {"state", to_word(job.state)},
           {"started", time_or_null(job.started)},
           {"ended", time_or_null(job.ended)},
           {"elapsed_ms", between(job.started, job.ended ? job.ended : std::optional(now))},
           {"silence_ms", Json()},
           {"current", Json()},
           {"complete", true},
           {"stages", Json::array()}};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  for (const StageStatus& s : job.stages) {
    if (s.run.empty()) continue;
    const Entry& entry = read(s.run, until);
    if (!entry.complete) out["complete"] = false;
    out["stages"].push_back(stage(s, job, entry));
    if (is_final(s.state) || s.state == StageState::kPrepared) continue;
    out["silence_ms"] = between(last_sign(s), now);
    if (const auto& current = entry.timeline.current())
      out["current"] = current_json(s, *current, now);
  }
  while (entries_.size() > kMaxEntries) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  return out;
}

}  // namespace clusterctl::job
