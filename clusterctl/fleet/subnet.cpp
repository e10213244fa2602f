#include "fleet/subnet.h"

#include <arpa/inet.h>

#include <charconv>
#include <string>

#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

using Bytes = std::array<unsigned char, 16>;

// Size of the address in bytes, 0 if it is none.
int read(std::string_view ip, Bytes& out) {
  if (!is_ip(ip)) return 0;
  const std::string text(ip);
  if (inet_pton(AF_INET, text.c_str(), out.data()) == 1) return 4;
  return inet_pton(AF_INET6, text.c_str(), out.data()) == 1 ? 16 : 0;
}

bool bit(const Bytes& bytes, int i) {
  return bytes[static_cast<size_t>(i / 8)] >> (7 - i % 8) & 1;
}

}  // namespace

std::optional<Subnet> Subnet::parse(std::string_view cidr) {
  const size_t slash = cidr.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Subnet out;
  out.size_ = read(cidr.substr(0, slash), out.bytes_);
  const std::string_view bits = cidr.substr(slash + 1);
  const auto [end, ec] = std::from_chars(bits.data(), bits.data() + bits.size(), out.prefix_);
  const bool fine = out.size_ > 0 && ec == std::errc() && end == bits.data() + bits.size() &&
                    bits[0] != '-' && out.prefix_ <= out.size_ * 8;
  return fine ? std::optional(out) : std::nullopt;
}

bool Subnet::contains(std::string_view ip) const {
  Bytes other{};
  if (read(ip, other) != size_) return false;
  for (int i = 0; i < prefix_; ++i) {
    if (bit(bytes_, i) != bit(other, i)) return false;
  }
  return true;
}

bool Subnet::is_edge(std::string_view ip) const {
  Bytes other{};
  if (size_ != 4 || prefix_ > 30 || read(ip, other) != 4 || !contains(ip)) return false;
  bool all_zero = true, all_one = true;
  for (int i = prefix_; i < 32; ++i) (bit(other, i) ? all_zero : all_one) = false;
  return all_zero || all_one;
}

}  // namespace clusterctl::fleet
