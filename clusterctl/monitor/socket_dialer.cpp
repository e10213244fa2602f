#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/files.h"
#include "base/poller.h"
#include "monitor/dialer.h"
#include "monitor/resolver.h"

namespace clusterctl::monitor {
namespace {

// RFC 4253, 4.2: other lines may come before the one that names the protocol.
constexpr size_t kMaxBanner = 2048;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

std::optional<Address> parse_address(const std::string& text, int port) {
  Address out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    out.length = sizeof(sockaddr_in);
    return out;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    out.length = sizeof(sockaddr_in6);
    return out;
  }
  return std::nullopt;
}

class SocketDialer final : public Dialer {
 public:
  Status open() {
    if (auto ok = poller_.open(); !ok) return ok;
    resolver_.emplace([this] { poller_.wake(); });
    return {};
  }

  void dial(uint64_t probe, const std::string& addr, int port) override {
    if (const auto address = parse_address(addr, port)) return connect_to(probe, *address);
    Call& call = calls_[probe];
    call.name = addr;
    call.port = port;
    resolve(probe, call);
  }

  void hang_up(uint64_t probe) override {
    const auto it = calls_.find(probe);
    if (it == calls_.end()) return;
    if (it->second.fd.valid()) poller_.remove(it->second.fd.get());
    calls_.erase(it);
  }

  std::vector<Answer> wait(std::chrono::milliseconds timeout) override {
    if (!answers_.empty()) timeout = std::chrono::milliseconds(0);
    const std::vector<Poller::Event> events = poller_.wait(timeout);
    for (const Poller::Event& e : events) {
      if (const auto it = calls_.find(e.id); it != calls_.end()) happened(e.id, it->second);
    }
    if (unresolved_ > 0) resolve_all();
    std::vector<Answer> out;
    out.swap(answers_);
    return out;
  }

  void wake() override { poller_.wake(); }

 private:
  struct Call {
    Fd fd;
    std::string name;  // while its address is looked up
    int port = 0;
    bool connected = false;
    std::string banner;
  };

  void end(uint64_t probe, bool ssh, std::string why) {
    answers_.push_back({probe, ssh, std::move(why)});
    hang_up(probe);
  }

  void resolve(uint64_t probe, Call& call) {
    const auto addr = resolver_->find(call.name);
    if (!addr) {
      ++unresolved_;
      return;
    }
    const auto address = parse_address(*addr, call.port);
    if (!address) return end(probe, false, call.name + " has no address");
    call.name.clear();
    connect_to(probe, *address);
  }

  void resolve_all() {
    unresolved_ = 0;
    std::vector<uint64_t> open;
    for (const auto& [probe, call] : calls_) {
      if (!call.name.empty()) open.push_back(probe);
    }
    for (const uint64_t probe : open) resolve(probe, calls_[probe]);
  }

  void connect_to(uint64_t probe, const Address& address) {
    Call& call = calls_[probe];
    call.fd.reset(
        ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!call.fd.valid()) return end(probe, false, std::strerror(errno));
    const int got = ::connect(call.fd.get(), reinterpret_cast<const sockaddr*>(&address.storage),
                              address.length);
    if (got != 0 && errno != EINPROGRESS) return end(probe, false, std::strerror(errno));
    if (auto ok = poller_.add(call.fd.get(), probe, EPOLLOUT); !ok)
      end(probe, false, ok.error().message);
  }

  void happened(uint64_t probe, Call& call) {
    if (!call.connected) {
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(call.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return end(probe, false, std::strerror(error));
      call.connected = true;
      poller_.modify(call.fd.get(), probe, EPOLLIN);
      return;
    }
    std::array<char, 512> buffer;
    const ssize_t n = ::read(call.fd.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) return end(probe, false, std::strerror(errno));
    if (n == 0) return end(probe, false, "it hung up before naming itself");
    call.banner.append(buffer.data(), static_cast<size_t>(n));
    if (call.banner.starts_with("SSH-") || call.banner.find("\nSSH-") != std::string::npos)
      return end(probe, true, "");
    if (call.banner.size() > kMaxBanner) end(probe, false, "what answers is no SSH server");
  }

  Poller poller_;
  std::optional<Resolver> resolver_;
  std::map<uint64_t, Call> calls_;
  std::vector<Answer> answers_;
  size_t unresolved_ = 0;
};

}  // namespace

Result<std::unique_ptr<Dialer>> make_socket_dialer() {
  auto dialer = std::make_unique<SocketDialer>();
  if (auto ok = dialer->open(); !ok) return fail(ok.error());
  return Result<std::unique_ptr<Dialer>>(std::move(dialer));
}

}  // namespace clusterctl::monitor
