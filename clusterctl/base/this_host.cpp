#include "base/this_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <array>

#include "base/files.h"
#include "base/strings.h"

namespace clusterctl {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address && address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address && address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!bytes || !inet_ntop(address->sa_family, bytes, text.data(), text.size())) return "";
  return text.data();
}

}  // namespace

std::vector<std::string> this_host_names() {
  std::vector<std::string> out{"localhost"};
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
    out.emplace_back(lower(name.data()));
    out.push_back(out.back().substr(0, out.back().find('.')));
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (std::string text = text_of(i->ifa_addr); !text.empty()) out.push_back(std::move(text));
  }
  freeifaddrs(list);
  return out;
}

std::string this_machine_id() {
  const auto text = read_file("/etc/machine-id", 4096);
  return text ? trim(*text) : std::string();
}

}  // namespace clusterctl
