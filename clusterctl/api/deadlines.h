// Which of many things is due next. Not thread-safe: belongs to one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace clusterctl::api {

using Steady = std::chrono::steady_clock::time_point;
// The monotonic clock; a test gives its own.
using SteadyClock = std::function<Steady()>;

class Deadlines {
 public:
  void set(uint64_t id, Steady when) {
    clear(id);
    times_[id] = when;
    order_.emplace(when, id);
  }
  void clear(uint64_t id) {
    const auto it = times_.find(id);
    if (it == times_.end()) return;
    order_.erase({it->second, id});
    times_.erase(it);
  }
  // Removes and returns those whose time has come.
  std::vector<uint64_t> take_due(Steady now) {
    std::vector<uint64_t> due;
    while (!order_.empty() && order_.begin()->first <= now) {
      due.push_back(order_.begin()->second);
      clear(due.back());
    }
    return due;
  }
  // Time until the next one, rounded up; nullopt: there is none.
  std::optional<std::chrono::milliseconds> wait(Steady now) const {
    if (order_.empty()) return std::nullopt;
    const auto left = order_.begin()->first - now;
    if (left <= left.zero()) return std::chrono::milliseconds(0);
    return std::chrono::ceil<std::chrono::milliseconds>(left);
  }

 private:
  std::map<uint64_t, Steady> times_;
  std::set<std::pair<Steady, uint64_t>> order_;
};

}  // namespace clusterctl::api
