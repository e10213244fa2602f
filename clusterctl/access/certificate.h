// X.509 certificates and private keys as PEM texts: reading, making, comparing. Keys are P-256.
// Pure but for the randomness of keys and serial numbers; any thread. Every refusal is an Error of
// one line that does not name a file: the caller knows which one it was.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace clusterctl::access {

struct Certificate {
  std::string pem;          // this one alone
  std::string fingerprint;  // SHA-256 of its DER, 64 lower-case hexadecimal digits
  Time not_before{}, not_after{};
  std::set<std::string>
      names;  // host names and addresses it is for, as canonical_name() spells them
  bool authority = false;
};

// All certificates of a text, in its order; at least one. Anything unreadable is an Error.
Result<std::vector<Certificate>> read_certificates(std::string_view pem);
// The key belongs to the certificate. kInvalid "bad_key", "key_mismatch".
Status check_key(const Certificate& certificate, std::string_view key_pem);
// `certificate` was signed by `issuer`. kInvalid "wrong_issuer".
Status check_issuer(const Certificate& certificate, const Certificate& issuer);

struct Validity {
  Time from{}, to{};
};

Result<std::string> make_key();
// A self-signed certificate of an authority that may sign servers' certificates and nothing below.
Result<Certificate> make_authority(std::string_view key_pem, Validity validity);
// A server's certificate for these names, signed by the authority.
Result<Certificate> issue(const Certificate& authority, std::string_view authority_key,
                          std::string_view key_pem, const std::set<std::string>& names,
                          Validity validity);

// How a host name or address stands in a certificate: lower case, without brackets, zone and dot at
// the end, IPv6 in its shortest form. Empty: neither a name nor an address.
std::string canonical_name(std::string_view name);

// "ab12…" only 64 hexadecimal digits, in any case, with or without colons; nullopt otherwise.
std::optional<std::string> parse_fingerprint(std::string_view text);

}  // namespace clusterctl::access
