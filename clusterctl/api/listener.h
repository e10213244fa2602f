// The sockets the daemon listens on. Start-up code; one thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "api/http.h"
#include "api/tls.h"
#include "base/files.h"

namespace clusterctl::api {

// A listening, non-blocking socket. Removes its socket file when destroyed, if it is still the one
// it made.
class Listener {
 public:
  // Mode 0660; the group, unless empty, must exist. The file of a daemon that died is replaced,
  // that of a living one is an Error.
  static Result<Listener> unix_socket(const fs::path& path, const std::string& group);
  // `host` is an address or a name, port 0 any free one. A port in use is an Error naming it.
  // With `tls` its connections speak that.
  static Result<Listener> tcp(const std::string& host, int port,
                              std::shared_ptr<const TlsServer> tls = nullptr);

  ~Listener() { close(); }
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_.get(); }
  Transport transport() const { return transport_; }
  // "unix:/run/clusterctl.sock", "127.0.0.1:9007".
  const std::string& name() const { return name_; }
  int port() const { return port_; }
  const std::shared_ptr<const TlsServer>& tls() const { return tls_; }
  void close();

 private:
  Listener() = default;

  Fd fd_;
  Transport transport_ = Transport::kUnix;
  std::string name_;
  int port_ = 0;
  std::shared_ptr<const TlsServer> tls_;
  fs::path path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Who is at the other end of an accepted connection.
Peer peer_of(int fd, Transport transport);

}  // namespace clusterctl::api
