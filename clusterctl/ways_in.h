// The ways into the daemon: listeners, their certificate, and who may use them. Built and stopped
// by the daemon's main thread.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "access/authority.h"
#include "api/auth.h"
#include "api/certificate_keeper.h"
#include "api/http_engine.h"
#include "api/router.h"
#include "api/service.h"
#include "base/clock.h"
#include "controller/controller.h"
#include "daemon_config.h"

namespace clusterctl {

class WaysIn {
 public:
  WaysIn(const DaemonConfig& config, const Clock& clock) : config_(config), clock_(clock) {}

  // Of the operator's certificate and key what can be known without changing anything.
  static Status check(const DaemonConfig& config, Time now);
  // Makes or reads authority, certificate and token. Before anything else starts.
  Status prepare();
  // Of the authority above the listener's certificate: the operator's, or our own.
  const std::string& fingerprint() const { return fingerprint_; }
  // Opens the sockets and says on standard output which. Router and controller must outlive stop().
  Status open(const api::Router& router, const controller::Controller& controller);
  void stop();

 private:
  Result<access::ServerIdentity> certificate(Time now) const;
  std::set<std::string> names() const;
  api::AuthOptions auth_options(const controller::Controller& controller) const;
  Status listen_tcp();
  api::Response handle(api::Request& request) const;

  const DaemonConfig& config_;
  const Clock& clock_;
  std::unique_ptr<access::Authority> authority_;
  std::string fingerprint_;
  std::string token_;
  std::string unix_group_;
  std::string announcement_;  // of the TCP listener
  std::unique_ptr<api::CertificateKeeper> keeper_;
  std::shared_ptr<const api::TlsServer> tls_;
  std::unique_ptr<api::Auth> auth_;
  std::unique_ptr<api::Service> service_;
  std::unique_ptr<api::HttpEngine> engine_;
};

}  // namespace clusterctl
