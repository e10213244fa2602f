#include "cli/machine/facts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/host_name.h"
#include "base/ssh_key.h"
#include "base/strings.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxFact = 4096;

std::string fact(const fs::path& path) {
  const auto text = read_file(path, kMaxFact);
  return text ? trim(*text) : std::string();
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (auto it = fs::directory_iterator(folder, ec); !ec && it != fs::directory_iterator();
       it.increment(ec))
    out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

// Made by software for others to use: their addresses say nothing about the machine.
bool is_made_by_software(const std::string& name) {
  constexpr std::array<std::string_view, 20> kPrefixes{
      "lo",    "docker",  "veth", "br-",   "virbr", "vnet", "tap",    "tun", "bond",   "team",
      "vxlan", "flannel", "cali", "dummy", "ifb",   "sit",  "ip6tnl", "gre", "ip6gre", "erspan"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view p) { return name.starts_with(p); });
}

// Permanent addresses of the network cards; where there is no hardware (containers) of the
// interfaces that look like one.
std::vector<std::string> read_macs(const fs::path& root) {
  std::set<std::string> cards, others;
  for (const fs::path& path : entries(root / "sys/class/net")) {
    const std::string name = path.filename().string();
    std::string address = lower(fact(path / "bonding_slave/perm_hwaddr"));
    if (address.empty()) address = lower(fact(path / "address"));
    if (fact(path / "type") != "1" || name.find('.') != std::string::npos ||
        address.find_first_not_of("0:") == std::string::npos)
      continue;
    std::error_code ec;
    if (fs::exists(path / "device", ec)) {
      // Management controllers show a card of their own by USB, with the same address in every
      // machine.
      if (fs::canonical(path / "device", ec).string().find("/usb") == std::string::npos)
        cards.insert(address);
    } else if (!is_made_by_software(name)) {
      others.insert(address);
    }
  }
  const auto& chosen = cards.empty() ? others : cards;
  return {chosen.begin(), chosen.end()};
}

std::string read_os(const fs::path& root) {
  const auto text = read_file(root / "etc/os-release", kMaxFact);
  std::string id, version;
  for (const std::string& line : split(text ? *text : "", '\n', true)) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string value = trim(line.substr(equals + 1));
    std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
    if (line.substr(0, equals) == "ID") id = value;
    if (line.substr(0, equals) == "VERSION_ID") version = value;
  }
  return trim(id + " " + version);
}

std::string read_host_name(const fs::path& root) {
  std::string name = fact(root / "etc/hostname");
  std::array<char, 256> now{};
  if (root == "/" && gethostname(now.data(), now.size() - 1) == 0) name = now.data();
  return normal_host_name(name);
}

}  // namespace

Result<MachineFacts> read_machine_facts(const fs::path& root) {
  MachineFacts out;
  out.name = read_host_name(root);
  out.serial = fact(root / "sys/class/dmi/id/product_serial");
  out.uuid = lower(fact(root / "sys/class/dmi/id/product_uuid"));
  out.macs = read_macs(root);
  out.os = read_os(root);
  for (const fs::path& path : entries(root / "etc/ssh")) {
    const std::string name = path.filename().string();
    if (!name.starts_with("ssh_host_") || !name.ends_with("_key.pub")) continue;
    if (auto key = plain_ssh_key(fact(path))) out.host_keys.push_back(std::move(*key));
  }
  if (out.host_keys.empty()) {
    return fail(Code::kConflict, "no_host_key",
                fmt::format("there is no SSH host key in {}: the controller could not reach this "
                            "machine",
                            (root / "etc/ssh").string()),
                "install and start an SSH server (openssh-server) first");
  }
  return out;
}

Result<std::string> address_towards(const std::string& host, int port) {
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  std::string why = code == 0 ? "no address" : gai_strerror(code);
  for (const addrinfo* a = code == 0 ? found : nullptr; a; a = a->ai_next) {
    const Fd fd(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (!fd.valid() || ::connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
      why = errno_error("find a way to", host).message;
      continue;
    }
    const void* bytes =
        own.ss_family == AF_INET6
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&own)->sin6_addr)
            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&own)->sin_addr);
    if (inet_ntop(own.ss_family, bytes, text.data(), text.size())) return std::string(text.data());
  }
  return fail(Code::kUnavailable, "unreachable", fmt::format("no way to {}: {}", host, why),
              "give the address by which the controller reaches this machine with --addr");
}

}  // namespace clusterctl::cli
