#include "run/output_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace clusterctl::run {
namespace {

// What is freed for the note, and for the events, when the disk is full.
constexpr size_t kReserve = 256 << 10;

}  // namespace

OutputLog::OutputLog(const fs::path& path, size_t max_bytes)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
      max_bytes_(max_bytes) {
  truncated_ = !fd_.valid();
}

void OutputLog::write(std::string_view bytes) {
  if (truncated_) return;
  const size_t room = max_bytes_ - std::min(max_bytes_, size_);
  const bool ok = append(bytes.substr(0, room));
  const int error = errno;
  if (!ok) {
    cut(size_ - std::min(size_ / 4, kReserve), std::strerror(error));
  } else if (bytes.size() > room) {
    cut(size_, fmt::format("it reached {} bytes", max_bytes_));
  }
}

bool OutputLog::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    size_ += static_cast<size_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void OutputLog::cut(size_t keep, std::string_view why) {
  truncated_ = true;
  if (keep < size_ && ::ftruncate(fd_.get(), static_cast<off_t>(keep)) == 0) size_ = keep;
  append(fmt::format("\n[clusterctl: the log was cut here: {}]\n", why));
}

bool OutputLog::give_way() {
  if (!fd_.valid() || size_ < 8192) return false;
  cut(size_ / 2, "the disk is full");
  return true;
}

void OutputLog::sync() {
  if (fd_.valid()) ::fdatasync(fd_.get());
}

std::string output_tail(const fs::path& run_dir, size_t bytes) {
  const Fd fd(::open((run_dir / "output.log").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return "";
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(bytes));
  std::string out(static_cast<size_t>(info.st_size - from), '\0');
  const ssize_t n = ::pread(fd.get(), out.data(), out.size(), from);
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (from > 0) out.erase(0, std::min(out.size(), out.find('\n')) + 1);  // a broken line
  return out;
}

}  // namespace clusterctl::run
