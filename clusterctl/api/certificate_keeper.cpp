#include "api/certificate_keeper.h"

#include "base/log.h"
#include "base/time.h"

namespace clusterctl::api {
namespace {

constexpr std::chrono::hours kEvery{1};

}  // namespace

Result<std::shared_ptr<const TlsServer>> CertificateKeeper::open() {
  auto identity = source_(clock_.now());
  if (!identity) return fail(identity.error());
  auto tls = TlsServer::make(identity->chain, identity->key);
  if (!tls) return fail(tls.error());
  tls_ = std::move(*tls);
  current_ = std::move(*identity);
  return std::shared_ptr<const TlsServer>(tls_);
}

void CertificateKeeper::look() {
  auto identity = source_(clock_.now());
  Status done = identity ? Status() : fail(identity.error());
  if (identity && identity->chain != current_.chain) {
    done = tls_->replace(identity->chain, identity->key);
    if (done) {
      log::info("new connections get the certificate that is valid until {}",
                format_time(identity->not_after));
      current_ = std::move(*identity);
    }
  }
  const std::string trouble = done ? "" : done.error().line();
  if (!trouble.empty() && trouble != trouble_) {
    log::warn("the certificate of the API stays as it was: {}", trouble);
  }
  trouble_ = trouble;
}

void CertificateKeeper::start() {
  if (!tls_) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void CertificateKeeper::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void CertificateKeeper::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kEvery, [] { return false; }) && !stop.stop_requested()) {
    look();
  }
}

}  // namespace clusterctl::api
