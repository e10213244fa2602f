#include "api/rate_limit.h"

#include <algorithm>

namespace clusterctl::api {

bool RateLimit::admit(const std::string& address, Steady::time_point now) {
  MutexLock lock(mutex_);
  if (full_at_.size() >= addresses_) {
    std::erase_if(full_at_, [&](const auto& entry) { return entry.second <= now; });
    while (full_at_.size() >= addresses_) {
      full_at_.erase(
          std::min_element(full_at_.begin(), full_at_.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
  }
  Steady::time_point& full = full_at_.try_emplace(address, now).first->second;
  const Steady::time_point next = std::max(full, now) + interval_;
  if (next - now > interval_ * burst_) return false;
  full = next;
  return true;
}

std::string address_without_port(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return colon == std::string::npos ? peer : peer.substr(0, colon);
}

}  // namespace clusterctl::api
