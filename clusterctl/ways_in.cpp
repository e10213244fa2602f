#include "ways_in.h"

#include <fmt/format.h>

#include <cstdio>

#include "api/compat/compat.h"
#include "api/compat/compat.h"
#include "base/log.h"
#include "base/process.h"
#include "base/this_host.h"

namespace clusterctl {
namespace {

// Enough for all connections and streams that the engine allows.
constexpr size_t kDescriptors = 8192;

bool any_address(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

// Those of one link only come and go with every container, and nobody calls a daemon by them.
bool link_local(const std::string& address) {
  return address.starts_with("fe80:") || address.starts_with("169.254.");
}

fs::path token_file(const DaemonConfig& config) {
  return config.token_file.empty() ? config.state_dir / "token" : config.token_file;
}

}  // namespace

Status WaysIn::check(const DaemonConfig& config, Time now) {
  if (config.tls_certificate.empty()) return {};
  auto supplied = access::read_supplied(config.tls_certificate, config.tls_key, config.tls_ca, now);
  if (!supplied) return fail(supplied.error());
  return {};
}

// What clients may call this daemon by: the listener's address, or all of this machine's when it
// listens on all.
std::set<std::string> WaysIn::names() const {
  std::set<std::string> out{"localhost", "127.0.0.1", "::1"};
  out.insert(config_.hosts.begin(), config_.hosts.end());
  const bool any = any_address(config_.tcp_host);
  if (!config_.tcp_host.empty() && !any) out.insert(config_.tcp_host);
  for (const std::string& name : this_host_names()) {
    const bool address = name.find(':') != std::string::npos ||
                         name.find_first_not_of("0123456789.") == std::string::npos;
    if (!address || (any && !link_local(name))) out.insert(name);
  }
  return out;
}

Result<access::ServerIdentity> WaysIn::certificate(Time now) const {
  if (config_.tls_certificate.empty()) return authority_->server(names(), now);
  return access::read_supplied(config_.tls_certificate, config_.tls_key, config_.tls_ca, now);
}

Status WaysIn::prepare() {
  const Time now = clock_.now();
  auto authority = access::Authority::open(config_.state_dir / "api-pki", now);
  if (!authority) return fail(authority.error());
  authority_ = std::make_unique<access::Authority>(std::move(*authority));
  fingerprint_ = authority_->fingerprint();
  if (!config_.tls_certificate.empty()) {
    auto supplied = certificate(now);
    if (!supplied) return fail(supplied.error());
    fingerprint_ = supplied->fingerprint;
  }
  if (config_.tcp_host.empty()) return {};
  if (config_.tcp_tls) {
    keeper_ = std::make_unique<api::CertificateKeeper>([this](Time at) { return certificate(at); },
                                                       clock_);
    auto tls = keeper_->open();
    if (!tls) return fail(tls.error());
    tls_ = std::move(*tls);
  }
  auto token = api::load_or_create_token(token_file(config_));
  if (!token) return fail(token.error());
  token_ = std::move(*token);
  return {};
}

api::AuthOptions WaysIn::auth_options(const controller::Controller& controller) const {
  api::AuthOptions out;
  out.token = token_;
  out.hosts = config_.hosts;
  if (!config_.tcp_host.empty()) {
    for (const std::string& name : names()) out.hosts.push_back(name);
  }
  out.group = api::find_group(unix_group_);
  out.clock = &clock_;
  out.find_token = [&controller](const std::string& id) -> std::optional<access::ApiToken> {
    const auto state = controller.state();
    const auto found = state->tokens.find(id);
    if (found == state->tokens.end()) return std::nullopt;
    return found->second;
  };
  return out;
}

Status WaysIn::listen_tcp() {
  if (config_.tcp_host.empty()) return {};
  auto port = engine_->listen_tcp(config_.tcp_host, config_.tcp_port, tls_);
  if (!port) return fail(port.error());
  const bool v6 = config_.tcp_host.find(':') != std::string::npos;
  announcement_ =
      fmt::format("listening on {}://{}:{} (token in {}{})", tls_ ? "https" : "http",
                  v6 ? "[" + config_.tcp_host + "]" : config_.tcp_host, *port,
                  token_file(config_).string(), tls_ ? ", CA SHA-256 " + fingerprint_ : "");
  return {};
}

Status WaysIn::open(const api::Router& router, const controller::Controller& controller) {
  unix_group_ = config_.unix_group;
  if (unix_group_.empty() && api::find_group("clusterctl")) unix_group_ = "clusterctl";
  auth_ = std::make_unique<api::Auth>(auth_options(controller));
  service_ = std::make_unique<api::Service>(router, *auth_);
  const size_t descriptors = raise_descriptor_limit(kDescriptors);
  if (descriptors < kDescriptors)
    log::warn("only {} file descriptors (LimitNOFILE): fewer connections and followers",
              descriptors);
  engine_ = std::make_unique<api::HttpEngine>(api::options_for(descriptors),
                                              [this](api::Request& r) { return handle(r); });
  if (auto ok = make_dirs(config_.unix_socket.parent_path()); !ok) return ok;
  if (auto ok = engine_->listen_unix(config_.unix_socket, unix_group_); !ok) return ok;
  if (auto ok = listen_tcp(); !ok) return ok;
  if (auto ok = engine_->start(); !ok) return ok;
  if (keeper_) keeper_->start();
  std::printf("listening on unix:%s\n", config_.unix_socket.c_str());
  if (!announcement_.empty()) std::printf("%s\n", announcement_.c_str());
  std::fflush(stdout);
  return {};
}

api::Response WaysIn::handle(api::Request& request) const {
  const auto next = [this](api::Request& r) { return service_->handle(r); };
  return config_.compat ? api::compat::through(request, next) : next(request);
}

void WaysIn::stop() {
  if (keeper_) keeper_->stop();
  if (engine_) engine_->stop();
}

}  // namespace clusterctl
