// How long things took, counted in classes. Plain value: who shares one guards it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace clusterctl {

class Histogram {
 public:
  // Upper ends of the classes in seconds, the end included; what takes longer is only in count().
  static constexpr std::array<double, 13> kBounds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,    0.25,  0.5,    1,     2.5,  10};

  void add(double seconds);
  // How many took at most kBounds[i].
  uint64_t at_most(size_t i) const;
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds.size()> classes_{};
  uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace clusterctl
