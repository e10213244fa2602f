#include "access/private_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clusterctl::access {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

}  // namespace

Result<std::string> read_private_file(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return fail(errno_error("look at", path));
  const bool owned = info.st_uid == geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0 || !owned) {
    return fail(
        Code::kInvalid, "bad_mode",
        fmt::format("{} holds a private key and can be read or changed by others", path.string()),
        fmt::format("chown {0} {1}; chmod 600 {1}; and look whether somebody did", geteuid(),
                    path.string()));
  }
  return read_file(path, kMaxBytes);
}

}  // namespace clusterctl::access
