// TLS as the HTTP engine speaks it: 1.2 and 1.3, no renegotiation, no resumption, no client
// certificates. Any thread.
#pragma once

#include <memory>
#include <string>

#include "api/byte_stream.h"
#include "base/annotations.h"
#include "base/error.h"

namespace clusterctl::api {

class TlsServer {
 public:
  // PEM: the server's certificate first, then those above it; the key of the first.
  static Result<std::shared_ptr<TlsServer>> make(const std::string& chain, const std::string& key);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // For connections from now on. After an Error all is as it was.
  Status replace(const std::string& chain, const std::string& key);
  // The server's end of a new connection; null when there is no memory for it.
  std::unique_ptr<ByteStream> accept(Fd fd) const;

 private:
  struct Context;
  TlsServer() = default;

  mutable Mutex mutex_;
  std::shared_ptr<const Context> context_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::api
