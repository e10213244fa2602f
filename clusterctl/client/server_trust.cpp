#include "client/server_trust.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#include <array>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "base/strings.h"
#include "base/time.h"

namespace clusterctl::client {
namespace {

constexpr size_t kMaxNames = 8;  // of a certificate, in a message

struct StoreDelete {
  void operator()(X509_STORE* s) const { X509_STORE_free(s); }
};
struct ContextDelete {
  void operator()(X509_STORE_CTX* c) const { X509_STORE_CTX_free(c); }
};
struct NamesDelete {
  void operator()(GENERAL_NAMES* n) const { GENERAL_NAMES_free(n); }
};

std::string fingerprint_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) return "";
  std::string out = sha256_hex({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return out;
}

std::string names_of(const X509* certificate) {
  std::vector<std::string> out;
  const std::unique_ptr<GENERAL_NAMES, NamesDelete> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type));
    const unsigned char* data = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (type == GEN_DNS) {
      out.push_back(one_line({reinterpret_cast<const char*>(data), static_cast<size_t>(size)}));
    } else if (type == GEN_IPADD && (size == 4 || size == 16) &&
               inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text.data(), text.size())) {
      out.emplace_back(text.data());
    }
  }
  const bool more = out.size() > kMaxNames;
  if (more) out.resize(kMaxNames);
  return out.empty() ? "no name" : join(out, ", ") + (more ? " …" : "");
}

std::string time_text(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown time";
  return format_time(Time(std::chrono::seconds(timegm(&parts))));
}

// The certificate with that fingerprint among those that the server has shown.
X509* find(const STACK_OF(X509) * shown, const std::string& pin) {
  for (int i = 0; i < sk_X509_num(shown); ++i) {
    X509* one = sk_X509_value(shown, i);
    if (fingerprint_of(one) == pin) return one;
  }
  return nullptr;
}

// As X509_verify_cert(context), but with `anchor` as the only authority.
int verify_with(X509_STORE_CTX* context, X509* anchor) {
  const std::unique_ptr<X509_STORE, StoreDelete> store(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, ContextDelete> own(X509_STORE_CTX_new());
  const bool ready = store && own && X509_STORE_add_cert(store.get(), anchor) == 1 &&
                     X509_STORE_CTX_init(own.get(), store.get(), X509_STORE_CTX_get0_cert(context),
                                         X509_STORE_CTX_get0_untrusted(context)) == 1 &&
                     X509_STORE_CTX_set_default(own.get(), "ssl_server") == 1;
  if (!ready) {
    X509_STORE_CTX_set_error(context, X509_V_ERR_OUT_OF_MEM);
    return 0;
  }
  X509_STORE_CTX_set_flags(own.get(), X509_V_FLAG_PARTIAL_CHAIN);
  const int good = X509_verify_cert(own.get()) == 1 ? 1 : 0;
  X509_STORE_CTX_set_error(context, X509_STORE_CTX_get_error(own.get()));
  return good;
}

}  // namespace

struct ServerTrust::Check {
  static int verify(X509_STORE_CTX* context, void* user) {
    ServerTrust& trust = *static_cast<ServerTrust*>(user);
    const STACK_OF(X509)* shown = X509_STORE_CTX_get0_untrusted(context);
    X509* leaf = X509_STORE_CTX_get0_cert(context);
    trust.shown_ = fingerprint_of(
        sk_X509_num(shown) > 0 ? sk_X509_value(shown, sk_X509_num(shown) - 1) : leaf);
    trust.names_ = names_of(leaf);
    X509* anchor = trust.pin_.empty() ? nullptr : find(shown, trust.pin_);
    if (!trust.pin_.empty() && !anchor) {
      trust.verdict_ = Verdict::kOtherPin;
      X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_UNTRUSTED);
      return 0;
    }
    const int good = anchor ? verify_with(context, anchor) : X509_verify_cert(context) == 1;
    trust.judge(X509_STORE_CTX_get_error(context), good == 1, leaf);
    return good;
  }
};

void ServerTrust::judge(int error, bool good, const x509_st* leaf) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      verdict_ = Verdict::kExpired;
      detail_ = time_text(X509_get0_notAfter(leaf));
      return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      verdict_ = Verdict::kNotYet;
      detail_ = time_text(X509_get0_notBefore(leaf));
      return;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      verdict_ = Verdict::kUnknownAuthority;
      return;
    default:
      verdict_ = good ? Verdict::kGood : Verdict::kBad;
      detail_ = X509_verify_cert_error_string(error);
  }
}

void ServerTrust::install(void* ssl_context) {
  verdict_ = Verdict::kNotAsked;
  SSL_CTX_set_cert_verify_callback(static_cast<SSL_CTX*>(ssl_context), Check::verify, this);
}

Error ServerTrust::explain(const std::string& server, const std::string& host,
                           std::string_view reason) const {
  const auto error = [](std::string why, std::string message, std::string hint) {
    return Error{Code::kUnavailable, std::move(why), std::move(message), std::move(hint), {}};
  };
  switch (verdict_) {
    case Verdict::kOtherPin:
      return error("untrusted",
                   fmt::format("{} is not what is pinned: its authority is {}", server, shown_),
                   "somebody stands in between, or the daemon has a new authority: compare with "
                   "clusterctl cluster info on the controller");
    case Verdict::kUnknownAuthority:
      return error("untrusted",
                   fmt::format("the authority of {} is not known here: {}", server, shown_),
                   "compare with clusterctl cluster info on the controller, then give it with "
                   "--ca-fingerprint or CLUSTERCTL_CA_FINGERPRINT");
    case Verdict::kExpired:
      return error("certificate_expired",
                   fmt::format("the certificate of {} has expired on {}", server, detail_),
                   "look at the clocks; the daemon renews its own certificate, one from elsewhere "
                   "is renewed there");
    case Verdict::kNotYet:
      return error("certificate_not_yet_valid",
                   fmt::format("the certificate of {} is not valid before {}", server, detail_),
                   "look at the clocks of both machines");
    case Verdict::kBad:
      return error("untrusted",
                   fmt::format("the certificate of {} is not good: {}", server, detail_), "");
    case Verdict::kGood:
      return error(
          "wrong_name",
          fmt::format("the certificate of {} is not for {} but for {}", server, host, names_),
          "use one of these names, or list this one under auth.hosts of the daemon");
    case Verdict::kNotAsked:
      break;
  }
  const bool plain = reason.find("wrong version number") != std::string_view::npos ||
                     reason.find("http request") != std::string_view::npos ||
                     reason.find("packet length too long") != std::string_view::npos;
  if (plain) {
    return error("no_tls", fmt::format("{} does not speak TLS", server),
                 "is it a clusterctl daemon, and its TLS port?");
  }
  return error("tls_failed", fmt::format("TLS with {} failed: {}", server, one_line(reason)), "");
}

Result<std::string> parse_fingerprint(std::string_view text) {
  std::string out;
  for (const char c : lower(trim(text))) {
    if (c != ':') out += c;
  }
  const bool good =
      out.size() == 64 && out.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (good) return out;
  return fail(
      Code::kInvalid, "bad_fingerprint",
      fmt::format("\"{}\" is no fingerprint of an authority", truncate_utf8(one_line(text), 80)),
      "64 hexadecimal digits: clusterctl cluster info on the controller shows it");
}

Status check_ca_file(const fs::path& file) {
  auto text = read_file(file, 4 << 20);
  if (!text) {
    return fail(Code::kInvalid, "bad_ca_file",
                "the CA file cannot be used: " + text.error().message);
  }
  BIO* in = BIO_new_mem_buf(text->data(), static_cast<int>(text->size()));
  X509* first = in ? PEM_read_bio_X509(in, nullptr, nullptr, nullptr) : nullptr;
  const bool good = first != nullptr;
  X509_free(first);
  BIO_free(in);
  ERR_clear_error();
  if (good) return {};
  return fail(Code::kInvalid, "bad_ca_file",
              fmt::format("there is no certificate in {}", file.string()),
              "it is made of PEM, like <state_dir>/api-pki/ca.crt of the daemon");
}

}  // namespace clusterctl::client
