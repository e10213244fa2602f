#include "controller/capacity.h"

#include <algorithm>
#include <charconv>

namespace clusterctl::controller {

int default_parallel_runs(unsigned processors, std::optional<uint64_t> available) {
  constexpr uint64_t kMost = 1000;  // what the setting allows
  uint64_t runs = std::min<uint64_t>(kMost, uint64_t{2} * processors);
  if (available) runs = std::min(runs, *available / kBytesPerRun);
  return static_cast<int>(std::max<uint64_t>(2, runs));
}

std::optional<uint64_t> available_memory(std::string_view meminfo) {
  constexpr std::string_view kName = "MemAvailable:";
  const size_t at = meminfo.find(kName);
  if (at == meminfo.npos) return std::nullopt;
  std::string_view rest = meminfo.substr(at + kName.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  uint64_t kib = 0;
  const auto [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (ec != std::errc() || !rest.starts_with(" kB")) return std::nullopt;
  return kib * 1024;
}

}  // namespace clusterctl::controller
