#include "controller/log_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/time.h"

namespace clusterctl::controller {
namespace {

constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::minutes kEvery{10};
constexpr std::string_view kDropped = ".dropped-";

std::vector<std::string> runs_of(const job::Job& job) {
  std::vector<std::string> out;
  for (const job::StageStatus& s : job.stages) {
    if (!s.run.empty()) out.push_back(s.run);
  }
  return out;
}

uint64_t size_of(const fs::path& dir) {
  uint64_t out = 0;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code gone;
    if (it->is_regular_file(gone) && !it->is_symlink(gone)) {
      const uint64_t size = it->file_size(gone);
      if (!gone) out += size;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> logs_to_drop(std::vector<KeptLog> logs, const LogLimits& limits,
                                      Time now) {
  std::sort(logs.begin(), logs.end(), [](const KeptLog& a, const KeptLog& b) {
    return std::tie(a.ended, a.job) > std::tie(b.ended, b.job);
  });
  std::vector<std::string> out;
  uint64_t bytes = 0;
  bool full = false;  // what is older than something that did not fit goes as well
  for (size_t i = 0; i < logs.size(); ++i) {
    bytes += logs[i].bytes;
    full = full || (i > 0 && (i >= limits.keep_jobs || bytes > limits.max_bytes));
    const bool old =
        limits.keep_days > 0 && now - logs[i].ended > std::chrono::hours(24) * limits.keep_days;
    if (full || old) out.push_back(logs[i].job);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

bool log_expired(const Controller& controller, const job::Job& job) {
  if (!job::is_final(job.state)) return false;
  bool any = false;
  for (const job::StageStatus& s : job.stages) {
    if (s.run.empty() || !s.started) continue;  // never begun: there was no log
    any = true;
    std::error_code ec;
    if (fs::exists(controller.run_dir(s.run), ec)) return false;
  }
  return any;
}

void LogKeeper::start() {
  thread_ = std::jthread([this](std::stop_token stop) { loop(stop); });
}

void LogKeeper::stop() {
  thread_ = {};
}

void LogKeeper::loop(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  auto looked = std::chrono::steady_clock::time_point();
  while (!stop.stop_requested()) {
    const auto state = controller_.state();
    const auto ended = static_cast<size_t>(
        std::count_if(state->jobs.begin(), state->jobs.end(),
                      [](const auto& entry) { return job::is_final(entry.second->state); }));
    const auto now = std::chrono::steady_clock::now();
    if (ended != ended_seen_ || now - looked >= kEvery || looked.time_since_epoch().count() == 0) {
      ended_seen_ = ended;
      looked = now;
      sweep();
    }
    if (const auto trouble = controller_.store_trouble(); trouble && trouble->reason == "no_space")
      make_room();
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, kTick, [] { return false; });
  }
}

std::vector<KeptLog> LogKeeper::kept(const State& state) {
  std::vector<KeptLog> out;
  std::map<std::string, uint64_t> sizes;
  for (const auto& [id, job] : state.jobs) {
    if (!job::is_final(job->state) || runs_of(*job).empty() || log_expired(controller_, *job))
      continue;
    const auto known = sizes_.find(id);
    uint64_t bytes = known == sizes_.end() ? 0 : known->second;
    if (known == sizes_.end()) {
      for (const std::string& run : runs_of(*job)) bytes += size_of(controller_.run_dir(run));
    }
    sizes[id] = bytes;
    out.push_back({id, job->ended.value_or(job->created), bytes});
  }
  sizes_ = std::move(sizes);  // those of jobs that are gone are forgotten
  return out;
}

void LogKeeper::sweep() {
  const auto state = controller_.state();
  for (const std::string& id : logs_to_drop(kept(*state), limits_, controller_.clock().now())) {
    const auto job = state->jobs.find(id);
    if (job == state->jobs.end()) continue;
    drop(*job->second);
    log::info("the log of job {} was dropped: {} bytes, ended {}", id, sizes_[id],
              format_time(job->second->ended.value_or(job->second->created)));
  }
}

// The oldest log that is worth it; the next one at the next look, should it not have been enough.
void LogKeeper::make_room() {
  const auto state = controller_.state();
  auto logs = kept(*state);
  std::erase_if(logs, [](const KeptLog& log) { return log.bytes == 0; });
  const auto oldest =
      std::min_element(logs.begin(), logs.end(), [](const KeptLog& a, const KeptLog& b) {
        return std::tie(a.ended, a.job) < std::tie(b.ended, b.job);
      });
  if (oldest == logs.end()) return;
  drop(*state->jobs.at(oldest->job));
  log::warn("the disk is full: the log of job {} was dropped, {} bytes", oldest->job,
            oldest->bytes);
}

// Renamed first, so that a log is there as a whole or not at all; what a killed daemon left is
// removed with the next one.
void LogKeeper::drop(const job::Job& job) {
  for (const std::string& run : runs_of(job)) {
    const fs::path dir = controller_.run_dir(run);
    const fs::path away = dir.parent_path() / (std::string(kDropped) + run);
    std::error_code ec;
    fs::rename(dir, away, ec);
  }
  std::error_code ec;
  const fs::path runs = controller_.run_dir("x").parent_path();
  for (const auto& entry : fs::directory_iterator(runs, ec)) {
    std::error_code gone;
    if (entry.path().filename().string().starts_with(kDropped)) fs::remove_all(entry.path(), gone);
  }
}

}  // namespace clusterctl::controller
