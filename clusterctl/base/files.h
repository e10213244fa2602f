// Files, as far as durability and locks are concerned. Any thread; every failure is an Error naming
// the path.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace clusterctl {

namespace fs = std::filesystem;

// Owns a file descriptor; closes it at the end. Movable, not copyable.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Whole content; more than `limit` bytes is an Error (kTooLarge).
Result<std::string> read_file(const fs::path& path, size_t limit = 64 << 20);
// Readers see the old content or the whole new one, also after a power cut: temporary file, fsync,
// rename, fsync of the folder.
Status write_file_atomic(const fs::path& path, std::string_view content, mode_t mode = 0644);
// Creates the file with exactly this mode; an existing one is an Error (kConflict, "exists").
Status create_file(const fs::path& path, std::string_view content, mode_t mode);
Status make_dirs(const fs::path& path, mode_t mode = 0755);
Status sync_dir(const fs::path& path);
// write(2) until everything is out.
Status write_all(int fd, std::string_view content);

// An flock(2) lock on a file, held until destruction (or, after a kill, until the kernel closes the
// descriptor).
class FileLock {
 public:
  // kConflict ("locked") when somebody else holds it.
  static Result<FileLock> acquire(const fs::path& path);
  // True when some process holds the lock now; false when the file is free or missing.
  static bool held(const fs::path& path);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// An Error made of errno: "cannot open /x: No such file or directory".
Error errno_error(std::string_view what, const fs::path& path);

}  // namespace clusterctl
