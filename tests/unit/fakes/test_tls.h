// An authority and a server's certificate for tests, made once for the program, and the client's
// end of a TLS connection over a blocking socket.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <string>

#include "access/certificate.h"

namespace clusterctl {

struct TestIdentity {
  std::string chain;  // server, then authority
  std::string key;
  access::Certificate authority, server;
};

struct TestAuthority {
  std::string key;
  access::Certificate certificate;

  static TestAuthority make() {
    const Time now = now_time();
    TestAuthority out;
    out.key = *access::make_key();
    out.certificate = *access::make_authority(
        out.key, {now - std::chrono::hours(1), now + std::chrono::hours(10000)});
    return out;
  }
  TestIdentity issue(const std::set<std::string>& names, std::chrono::hours from,
                     std::chrono::hours to) const {
    TestIdentity out;
    out.key = *access::make_key();
    out.authority = certificate;
    out.server =
        *access::issue(certificate, key, out.key, names, {now_time() + from, now_time() + to});
    out.chain = out.server.pem + certificate.pem;
    return out;
  }
  static Time now_time() { return SystemClock().now(); }
};

inline const TestIdentity& test_identity() {
  static const TestIdentity identity = TestAuthority::make().issue(
      {"localhost", "127.0.0.1"}, std::chrono::hours(-1), std::chrono::hours(1000));
  return identity;
}

struct TestTlsOptions {
  int min_version = TLS1_2_VERSION, max_version = TLS1_3_VERSION;
};

struct SslDelete {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using TestSsl = std::unique_ptr<SSL, SslDelete>;

// Ready for SSL_connect(); verifies nothing. The descriptor stays the caller's.
inline TestSsl test_tls_client(int fd, TestTlsOptions options = {}) {
  // OpenSSL's own sockets do not say MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_security_level(context, 0);  // old versions are asked for, too
  SSL_CTX_set_min_proto_version(context, options.min_version);
  SSL_CTX_set_max_proto_version(context, options.max_version);
  TestSsl ssl(SSL_new(context));
  SSL_CTX_free(context);
  SSL_set_fd(ssl.get(), fd);
  return ssl;
}

}  // namespace clusterctl
