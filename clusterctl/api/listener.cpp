#include "api/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "api/auth.h"

namespace clusterctl::api {
namespace {

constexpr int kBacklog = 4096;

Error cannot_listen(const std::string& name, std::string_view why, std::string_view hint = "") {
  return Error{Code::kUnavailable,
               "cannot_listen",
               fmt::format("cannot listen on {}: {}", name, why),
               std::string(hint),
               {}};
}

Result<Fd> make_socket(int family, const std::string& name) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail(cannot_listen(name, std::strerror(errno)));
  return fd;
}

Result<sockaddr_un> unix_address(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path) {
    return fail(cannot_listen("unix:" + text, fmt::format("the path is longer than {} bytes",
                                                          sizeof address.sun_path - 1)));
  }
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

// Makes way for our socket file: removes one that nobody answers on.
Status remove_stale(const fs::path& path, const sockaddr_un& address) {
  const std::string name = "unix:" + path.string();
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail(cannot_listen(name, std::strerror(errno)));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(cannot_listen(name, "the file exists and is not a socket", "remove it"));
  }
  auto probe = make_socket(AF_UNIX, name);
  if (!probe) return fail(probe.error());
  const auto* target = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN means that the backlog of a living daemon is full.
  if (connect(probe->get(), target, sizeof address) == 0 || errno == EAGAIN) {
    return fail(cannot_listen(name, "another daemon answers there", "stop it first"));
  }
  if (errno != ECONNREFUSED && errno != ENOENT) {
    return fail(cannot_listen(name, std::strerror(errno)));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail(cannot_listen(name, std::strerror(errno)));
  }
  return {};
}

std::string address_text(const sockaddr_storage& address, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    port = ntohs(v4.sin_port);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), port);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  port = ntohs(v6.sin6_port);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), port);
}

std::vector<gid_t> peer_groups(int fd) {
  std::vector<gid_t> groups(64);
  socklen_t size = groups.size() * sizeof(gid_t);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) {
    if (errno != ERANGE) return {};
    groups.resize(size / sizeof(gid_t));
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return {};
  }
  groups.resize(size / sizeof(gid_t));
  return groups;
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : fd_(std::move(other.fd_)),
      transport_(other.transport_),
      name_(std::move(other.name_)),
      port_(other.port_),
      tls_(std::move(other.tls_)),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_) {
  other.path_.clear();
}

void Listener::close() {
  fd_.reset();
  struct stat info {};
  if (!path_.empty() && lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  path_.clear();
}

Result<Listener> Listener::unix_socket(const fs::path& path, const std::string& group) {
  Listener out;
  out.name_ = "unix:" + path.string();
  std::optional<gid_t> gid;
  if (!group.empty()) {
    gid = find_group(group);
    if (!gid) {
      return fail(
          cannot_listen(out.name_, "there is no group " + group, "groupadd --system " + group));
    }
  }
  const auto address = unix_address(path);
  if (!address) return fail(address.error());
  if (auto free = remove_stale(path, *address); !free) return fail(free.error());
  auto fd = make_socket(AF_UNIX, out.name_);
  if (!fd) return fail(fd.error());
  const auto* target = reinterpret_cast<const sockaddr*>(&*address);
  struct stat info {};
  // Nobody can connect before listen(), so the mode is right from the first connection on.
  const bool ok = bind(fd->get(), target, sizeof *address) == 0 && chmod(path.c_str(), 0660) == 0 &&
                  (!gid || chown(path.c_str(), static_cast<uid_t>(-1), *gid) == 0) &&
                  lstat(path.c_str(), &info) == 0 && listen(fd->get(), kBacklog) == 0;
  if (!ok) return fail(cannot_listen(out.name_, std::strerror(errno)));
  out.fd_ = std::move(*fd);
  out.path_ = path;
  out.device_ = info.st_dev;
  out.inode_ = info.st_ino;
  return out;
}

Result<Listener> Listener::tcp(const std::string& host, int port,
                               std::shared_ptr<const TlsServer> tls) {
  Listener out;
  out.tls_ = std::move(tls);
  out.transport_ = Transport::kTcp;
  out.name_ = fmt::format("{}:{}", host, port);
  if (port < 0 || port > 65535) {
    return fail(cannot_listen(out.name_, "a port is a number from 0 to 65535"));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return fail(cannot_listen(out.name_, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  auto fd = make_socket(list->ai_family, out.name_);
  if (!fd) return fail(fd.error());
  const int on = 1;
  setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (list->ai_family == AF_INET6) {
    setsockopt(fd->get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (bind(fd->get(), list->ai_addr, list->ai_addrlen) != 0 || listen(fd->get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return fail(cannot_listen(out.name_, fmt::format("port {} is in use", port),
                                "stop the other program or choose another port"));
    }
    return fail(cannot_listen(out.name_, std::strerror(errno)));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd->get(), reinterpret_cast<sockaddr*>(&bound), &size);
  out.name_ = address_text(bound, out.port_);
  out.fd_ = std::move(*fd);
  return out;
}

Peer peer_of(int fd, Transport transport) {
  Peer peer;
  peer.transport = transport;
  if (transport == Transport::kUnix) {
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
      peer.uid = who.uid;
      peer.gid = who.gid;
      peer.pid = who.pid;
      peer.groups = peer_groups(fd);
    }
    peer.address = fmt::format("unix:{}", peer.pid);
    return peer;
  }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  int port = 0;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    peer.address = address_text(address, port);
  }
  size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    const std::string own = address_text(address, port);
    peer.local = own.substr(0, own.rfind(':'));
  }
  return peer;
}

}  // namespace clusterctl::api
