#include "api/job_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

constexpr std::chrono::milliseconds kPoll{100};
constexpr size_t kStep = 64 << 10;
constexpr size_t kChunks = 8;

// Without the character that the end cuts in two.
std::string_view whole_characters(std::string_view text) {
  size_t begin = text.size();
  for (int i = 0; i < 4 && begin > 0; ++i) {
    const auto byte = static_cast<unsigned char>(text[--begin]);
    if (byte < 0x80) return text;
    if (byte < 0xc0) continue;
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return begin + length > text.size() && begin > 0 ? text.substr(0, begin) : text;
  }
  return text;  // no UTF-8
}

}  // namespace

std::optional<std::chrono::milliseconds> JobTail::poll() const {
  return kPoll;
}

std::shared_ptr<const job::Job> JobTail::job() const {
  const auto now = c_.state();
  const auto it = now->jobs.find(job_);
  return it == now->jobs.end() ? nullptr : it->second;
}

bool JobTail::changed() {
  Seen now;
  if (const auto job = this->job()) {
    now.version = job->resource_version;
    for (const job::StageStatus& stage : job->stages) {
      if (!stage.run.empty()) now.run = stage.run;
    }
  }
  struct stat info {};
  if (!now.run.empty() && ::stat((c_.run_dir(now.run) / file_).c_str(), &info) == 0)
    now.size = static_cast<uint64_t>(info.st_size);
  const bool news = seen_ != now;
  seen_ = std::move(now);
  return news;
}

std::string JobTail::read(const std::string& run, uint64_t offset, bool finished,
                          size_t longest) const {
  Fd fd(::open((c_.run_dir(run) / file_).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  std::string out(kStep, '\0');
  for (;;) {
    const ssize_t n = ::pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n <= 0) return "";
    const std::string_view got(out.data(), static_cast<size_t>(n));
    const size_t end = got.rfind('\n');
    if (end != std::string_view::npos) return std::string(got.substr(0, end + 1));
    const bool more = got.size() == out.size();
    if (!more) return finished ? std::string(got) : "";
    if (out.size() >= longest) return std::string(whole_characters(got));
    out.resize(std::min(out.size() * 4, longest));
  }
}

const Chunk* JobTail::find(const std::string& run, uint64_t offset) const {
  for (const auto& [place, chunk] : chunks_) {
    if (place.second == offset && place.first == run) return &chunk;
  }
  return nullptr;
}

void JobTail::keep(const std::string& run, uint64_t offset, Chunk chunk) {
  if (chunks_.size() == kChunks) chunks_.pop_front();
  chunks_.emplace_back(std::pair(run, offset), std::move(chunk));
}

std::shared_ptr<JobTail> JobTails::get(const std::string& job, const std::string& file) {
  std::weak_ptr<JobTail>& place = tails_[{job, file}];
  std::shared_ptr<JobTail> tail = place.lock();
  if (tail) return tail;
  tail = std::make_shared<JobTail>(c_, job, file);
  place = tail;
  std::erase_if(tails_, [](const auto& entry) { return entry.second.expired(); });
  return tail;
}

}  // namespace clusterctl::api
