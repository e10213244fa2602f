// References to jobs and plans by the beginning of their id. Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace clusterctl::controller {

// Names everything that `ref` fits, or the first few: what was meant is probably among them.
template <typename Map>
tl::unexpected<Error> ambiguous(const Map& map, std::string_view ref, std::string_view what) {
  constexpr size_t kShown = 8;
  std::vector<std::string> fits;
  size_t all = 0;
  for (auto it = map.lower_bound(std::string(ref)); it != map.end() && it->first.starts_with(ref);
       ++it, ++all) {
    if (fits.size() < kShown) fits.push_back(it->first);
  }
  return fail(
      Code::kInvalid, "ambiguous",
      fmt::format("\"{}\" is ambiguous: it fits {} {}", one_line(ref), all, what),
      fmt::format("give more of the id: {}{}", join(fits, ", "), all > kShown ? ", …" : ""));
}

}  // namespace clusterctl::controller
