// What random fleets are drawn with; inside a property only.
#pragma once

#include <rapidcheck.h>

#include <vector>

namespace clusterctl::plan {

template <typename T>
T one_of(const std::vector<T>& values) {
  return *rc::gen::elementOf(values);
}
// True once in so many draws.
inline bool once_in(int draws) {
  return *rc::gen::inRange(0, draws) == 0;
}
inline bool coin() {
  return *rc::gen::arbitrary<bool>();
}
// From 0, `n` included.
inline int up_to(int n) {
  return *rc::gen::inRange(0, n + 1);
}

}  // namespace clusterctl::plan
