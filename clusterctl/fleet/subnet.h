// Address arithmetic for placement: is an address inside a network? IPv4 and IPv6. Pure, any
// thread.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace clusterctl::fleet {

class Subnet {
 public:
  // "10.0.0.0/24", "fd00::/64", also with host bits set ("10.0.0.7/24"); nullopt when it is nothing
  // of the kind.
  static std::optional<Subnet> parse(std::string_view cidr);
  bool contains(std::string_view ip) const;
  // The network or broadcast address of an IPv4 network that has them: no host can have it.
  bool is_edge(std::string_view ip) const;

 private:
  std::array<unsigned char, 16> bytes_{};
  int size_ = 4;    // bytes of an address of this family
  int prefix_ = 0;  // bits
};

}  // namespace clusterctl::fleet
