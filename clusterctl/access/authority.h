// The certificate authority of the API: made at the daemon's first start, it signs the certificate
// of the daemon's own TLS listener and nothing else. Clients pin its fingerprint, so it is never
// replaced by itself. One thread at a time.
//
//   <dir>/ca.pem      its key and certificate, 0600, 10 years
//   <dir>/ca.crt      the certificate alone, for clients
//   <dir>/server.pem  key and certificate of the listener, 0600, 2 years, renewed by server()
#pragma once

#include <set>
#include <string>

#include "access/certificate.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"

namespace clusterctl::access {

// What a TLS listener shows.
struct ServerIdentity {
  std::string chain;        // PEM: its certificate first, the authority last
  std::string key;          // PEM
  std::string fingerprint;  // of the authority: what clients pin
  Time not_after{};
  std::set<std::string> names;
};

class Authority {
 public:
  // Makes folder and authority if there are none. Damaged, expired, or readable by others: an Error
  // naming the file and what to do.
  static Result<Authority> open(const fs::path& dir, Time now);

  // Lower-case hexadecimal SHA-256 of the certificate's DER.
  const std::string& fingerprint() const { return certificate_.fingerprint; }
  const Certificate& certificate() const { return certificate_; }
  fs::path certificate_file() const { return dir_ / "ca.crt"; }

  // The server's certificate for these names, in any spelling. The stored one as long as it is for
  // exactly them and more than a third of its life is left; else a new one, which is stored.
  Result<ServerIdentity> server(const std::set<std::string>& names, Time now) const;

 private:
  Authority(fs::path dir, std::string key, Certificate certificate)
      : dir_(std::move(dir)), key_(std::move(key)), certificate_(std::move(certificate)) {}
  static Status create(const fs::path& dir, Time now);
  Result<ServerIdentity> renew(const std::set<std::string>& names, Time now) const;
  ServerIdentity identity(const Certificate& server, std::string key) const;

  fs::path dir_;
  std::string key_;
  Certificate certificate_;
};

// The operator's own certificate (with what stands between it and the authority), key and, unless
// it is empty, authority. Checked: readable, key and issuers match, valid now. The fingerprint is
// that of the last certificate.
Result<ServerIdentity> read_supplied(const fs::path& certificate, const fs::path& key,
                                     const fs::path& ca, Time now);

}  // namespace clusterctl::access
