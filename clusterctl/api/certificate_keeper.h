// Keeps the certificate of the TLS listener valid while the daemon runs: asks its source from time
// to time and gives what is new to new connections. start() and stop() by one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "access/authority.h"
#include "api/tls.h"
#include "base/clock.h"

namespace clusterctl::api {

class CertificateKeeper {
 public:
  // The certificate to use at this time; called by one thread at a time.
  using Source = std::function<Result<access::ServerIdentity>(Time now)>;

  CertificateKeeper(Source source, const Clock& clock)
      : source_(std::move(source)), clock_(clock) {}
  ~CertificateKeeper() { stop(); }

  // Before everything else: the first certificate, or why there is none.
  Result<std::shared_ptr<const TlsServer>> open();
  // A thread that looks every hour.
  void start();
  void stop();
  // One look, in the caller's thread. Not while started. What is wrong is logged, and the old
  // certificate stays; said again only when it is something else.
  void look();

  const access::ServerIdentity& current() const { return current_; }

 private:
  void loop(const std::stop_token& stop);

  const Source source_;
  const Clock& clock_;
  std::shared_ptr<TlsServer> tls_;
  access::ServerIdentity current_;
  std::string trouble_;
  std::mutex mutex_;  // only to wait with
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace clusterctl::api
