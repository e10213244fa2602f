#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace clusterctl {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Error errno_error(std::string_view what, const fs::path& path) {
  const int e = errno;
  Code code = Code::kInternal;
  std::string reason = "io";
  switch (e) {
    case ENOENT:
      code = Code::kNotFound, reason = "no_such_file";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kForbidden;
      break;
    case ENOSPC:
    case EDQUOT:
      code = Code::kUnavailable, reason = "no_space";
      break;
    default:
      break;
  }
  return Error{
      code, reason, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(e)), "", {}};
}

Result<std::string> read_file(const fs::path& path, size_t limit) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail(errno_error("open", path));
  std::string out;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno_error("read", path));
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > limit) {
      return fail(Code::kTooLarge, "file_too_large",
                  fmt::format("{} is larger than {} bytes", path.string(), limit));
    }
  }
}

namespace {

Status write_fd(int fd, std::string_view content, const fs::path& name) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno_error("write", name));
    content.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Status write_all(int fd, std::string_view content) {
  return write_fd(fd, content, fmt::format("descriptor {}", fd));
}

Status sync_dir(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return fail(errno_error("sync", path));
  return {};
}

Status write_file_atomic(const fs::path& path, std::string_view content, mode_t mode) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::string temporary = (parent / ("." + path.filename().string() + ".XXXXXX")).string();
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return fail(errno_error("write", path));
  const auto give_up = [&](Error error) {
    ::unlink(temporary.c_str());
    return fail(std::move(error));
  };
  if (::fchmod(fd.get(), mode) != 0) return give_up(errno_error("write", path));
  if (auto written = write_fd(fd.get(), content, path); !written) return give_up(written.error());
  if (::fsync(fd.get()) != 0) return give_up(errno_error("write", path));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up(errno_error("write", path));
  return sync_dir(parent);
}

Status create_file(const fs::path& path, std::string_view content, mode_t mode) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.valid()) {
    if (errno == EEXIST)
      return fail(Code::kConflict, "exists", fmt::format("{} exists already", path.string()));
    return fail(errno_error("create", path));
  }
  // What could not be written whole is taken away: half a file that "exists already" would block
  // the next try.
  const auto give_up = [&](Error error) {
    ::unlink(path.c_str());
    return fail(std::move(error));
  };
  if (::fchmod(fd.get(), mode) != 0) return give_up(errno_error("write", path));
  if (auto written = write_fd(fd.get(), content, path); !written) return give_up(written.error());
  if (::fsync(fd.get()) != 0) return give_up(errno_error("write", path));
  return {};
}

Status make_dirs(const fs::path& path, mode_t mode) {
  std::error_code ec;
  if (path.empty() || fs::is_directory(path, ec)) return {};
  if (!path.has_filename()) return make_dirs(path.parent_path(), mode);  // "a/b/" is "a/b"
  if (auto parent = make_dirs(path.parent_path(), 0755); !parent) return parent;
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail(errno_error("create", path));
  if (!fs::is_directory(path, ec))
    return fail(Code::kInvalid, "not_a_folder", fmt::format("{} is not a folder", path.string()));
  return {};
}

Result<FileLock> FileLock::acquire(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail(errno_error("open", path));
  // held() takes the lock for a moment to look: a lock that is busy for longer than that has an
  // owner.
  constexpr int kTries = 200;
  for (int i = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(errno_error("lock", path));
    if (i == kTries)
      return fail(Code::kConflict, "locked",
                  fmt::format("{} is locked by another process", path.string()));
    ::usleep(5000);
  }
  return FileLock(std::move(fd));
}

bool FileLock::held(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return fd.valid() && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace clusterctl
