#include "base/this_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "base/files.h"

namespace clusterctl {
namespace {

// Fields of /proc/self/stat after the name of the program, which may hold anything; proc(5) counts
// from 1, the first one here is its field 3.
struct Stat {
  double user = 0, system = 0;  // ticks
  int64_t threads = 0;
  double start = 0;  // ticks since the machine started
  int64_t virtual_size = 0;
  int64_t resident = 0;  // pages
};

std::optional<Stat> read_stat() {
  const auto text = read_file("/proc/self/stat", 4096);
  if (!text) return std::nullopt;
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream in(text->substr(name_end + 1));
  Stat out;
  std::string word;
  for (int field = 3; field <= 24 && in >> word; ++field) {
    const double value = field == 3 ? 0 : std::strtod(word.c_str(), nullptr);
    if (field == 14) out.user = value;
    if (field == 15) out.system = value;
    if (field == 20) out.threads = static_cast<int64_t>(value);
    if (field == 22) out.start = value;
    if (field == 23) out.virtual_size = static_cast<int64_t>(value);
    if (field == 24) out.resident = static_cast<int64_t>(value);
  }
  if (!in) return std::nullopt;
  return out;
}

// Unix time at which the machine started.
double boot_time() {
  const auto text = read_file("/proc/stat", 1 << 20);
  const size_t at = text ? text->find("\nbtime ") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtod(text->c_str() + at + 7, nullptr);
}

int64_t count_descriptors() {
  std::error_code ec;
  int64_t n = 0;
  for (fs::directory_iterator it("/proc/self/fd", ec), end; !ec && it != end; it.increment(ec)) ++n;
  return n > 0 ? n - 1 : 0;  // one of them was this look
}

}  // namespace

std::optional<ProcessNumbers> this_process() {
  const auto stat = read_stat();
  if (!stat) return std::nullopt;
  static const double kBoot = boot_time();  // /proc/stat is long on machines with many processors
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  ProcessNumbers out;
  out.cpu_seconds = (stat->user + stat->system) / ticks;
  out.started = kBoot + stat->start / ticks;
  out.resident = stat->resident * ::sysconf(_SC_PAGESIZE);
  out.virtual_size = stat->virtual_size;
  out.threads = stat->threads;
  out.open_descriptors = count_descriptors();
  out.max_descriptors = static_cast<int64_t>(limit.rlim_cur);
  return out;
}

}  // namespace clusterctl
