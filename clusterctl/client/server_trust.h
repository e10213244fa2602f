// Whether an https:// server is the one that is meant, and if not, why not in one line. By a pinned
// authority (the chain that the server shows must end in exactly that certificate), or by those of
// a file, or of the system. libcurl checks the name. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

struct x509_st;

namespace clusterctl::client {

class ServerTrust {
 public:
  // `pin`: 64 lower-case hexadecimal digits, or empty.
  explicit ServerTrust(std::string pin) : pin_(std::move(pin)) {}
  ServerTrust(const ServerTrust&) = delete;
  ServerTrust& operator=(const ServerTrust&) = delete;

  // Before each connection, with libcurl's SSL_CTX, which must not outlive this.
  void install(void* ssl_context);
  // After a connection to `server` that failed in TLS. `host` is what was asked for, `reason` what
  // the library says.
  Error explain(const std::string& server, const std::string& host, std::string_view reason) const;

 private:
  enum class Verdict { kNotAsked, kGood, kUnknownAuthority, kOtherPin, kExpired, kNotYet, kBad };
  struct Check;
  void judge(int error, bool good, const x509_st* leaf);

  const std::string pin_;
  // Of the last handshake.
  Verdict verdict_ = Verdict::kNotAsked;
  std::string shown_;  // fingerprint of the last certificate that the server has shown
  std::string names_;  // that its certificate is for
  std::string detail_;
};

// "AB:12…" or "ab12…" as 64 lower-case hexadecimal digits; kInvalid "bad_fingerprint".
Result<std::string> parse_fingerprint(std::string_view text);
// There are certificates in it; else kInvalid "bad_ca_file".
Status check_ca_file(const fs::path& file);

}  // namespace clusterctl::client
