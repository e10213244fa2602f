#include "base/histogram.h"

#include <algorithm>
#include <numeric>

namespace clusterctl {

void Histogram::add(double seconds) {
  const auto end = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  if (end != kBounds.end()) ++classes_[static_cast<size_t>(end - kBounds.begin())];
  ++count_;
  sum_ += seconds;
}

uint64_t Histogram::at_most(size_t i) const {
  return std::accumulate(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         uint64_t{0});
}

}  // namespace clusterctl
