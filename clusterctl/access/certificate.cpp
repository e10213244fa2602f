#include "access/certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "access/openssl_objects.h"
#include "base/digest.h"
#include "base/strings.h"

namespace clusterctl::access {
namespace {

constexpr int kSerialBytes = 16;
constexpr size_t kMaxName = 253;

tl::unexpected<Error> failed(std::string_view what) {
  return fail(Code::kInternal, "openssl", fmt::format("{}: {}", what, openssl_reason()));
}

// Nobody is there to be asked for a passphrase.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Result<KeyPtr> parse_key(std::string_view pem) {
  const BioPtr in = read_from(pem);
  KeyPtr key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  ERR_clear_error();
  if (!key) {
    return fail(Code::kInvalid, "bad_key", "there is no private key in PEM without a passphrase");
  }
  return key;
}

Result<X509Ptr> parse_certificate(std::string_view pem) {
  const BioPtr in = read_from(pem);
  X509Ptr certificate(in ? PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  ERR_clear_error();
  if (!certificate) {
    return fail(Code::kInvalid, "bad_certificate", "there is no certificate in PEM");
  }
  return certificate;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<Time> time_of(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return fail(Code::kInvalid, "bad_certificate", "the certificate has no readable times");
  }
  return Time(std::chrono::seconds(timegm(&parts)));
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int size = ASN1_STRING_length(address);
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (size != 4 && size != 16) return "";
  return inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size()) ? text.data()
                                                                                     : "";
}

std::set<std::string> names_of(const X509* certificate) {
  std::set<std::string> out;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    if (type == GEN_IPADD) out.insert(address_text(static_cast<const ASN1_OCTET_STRING*>(value)));
    if (type != GEN_DNS) continue;
    const auto* name = static_cast<const ASN1_STRING*>(value);
    out.insert(lower(std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                                      static_cast<size_t>(ASN1_STRING_length(name)))));
  }
  out.erase("");
  return out;
}

Result<Certificate> describe(X509* x) {
  Certificate out;
  unsigned char* der = nullptr;
  const int size = i2d_X509(x, &der);
  if (size <= 0) return failed("the certificate cannot be encoded");
  out.fingerprint = sha256_hex({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  const BioPtr text(BIO_new(BIO_s_mem()));
  if (!text || PEM_write_bio_X509(text.get(), x) != 1)
    return failed("the certificate cannot be encoded");
  out.pem = text_of(text.get());
  auto from = time_of(X509_get0_notBefore(x));
  auto to = time_of(X509_get0_notAfter(x));
  if (!from || !to) return fail(from ? to.error() : from.error());
  out.not_before = *from;
  out.not_after = *to;
  out.names = names_of(x);
  out.authority = X509_check_ca(x) == 1;
  ERR_clear_error();
  return out;
}

bool add_extension(X509* x, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  const bool added = extension && X509_add_ext(x, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// Made of values and not of a text that OpenSSL would take apart: a comma in a name stays one.
bool add_names(X509* x, const std::set<std::string>& names) {
  const NamesPtr list(GENERAL_NAMES_new());
  for (const std::string& name : names) {
    GENERAL_NAME* entry = GENERAL_NAME_new();
    if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str())) {
      GENERAL_NAME_set0_value(entry, GEN_IPADD, address);
    } else {
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
      GENERAL_NAME_set0_value(entry, GEN_DNS, text);
    }
    sk_GENERAL_NAME_push(list.get(), entry);
  }
  ERR_clear_error();
  return X509_add1_ext_i2d(x, NID_subject_alt_name, list.get(), 0, X509V3_ADD_DEFAULT) == 1;
}

bool set_serial(X509* x) {
  std::array<unsigned char, kSerialBytes> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  bytes[0] |= 0x40;
  BIGNUM* number = BN_bin2bn(bytes.data(), bytes.size(), nullptr);
  const bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
  BN_free(number);
  return set;
}

bool set_subject(X509* x, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(x);
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1;
}

bool set_times(X509* x, Validity validity) {
  const auto seconds = [](Time t) {
    return static_cast<time_t>(
        std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count());
  };
  return ASN1_TIME_set(X509_getm_notBefore(x), seconds(validity.from)) &&
         ASN1_TIME_set(X509_getm_notAfter(x), seconds(validity.to));
}

// What every certificate of ours has; unsigned.
Result<X509Ptr> blank(EVP_PKEY* key, const std::string& subject, Validity validity) {
  X509Ptr x(X509_new());
  const bool ok = x && X509_set_version(x.get(), X509_VERSION_3) == 1 && set_serial(x.get()) &&
                  set_subject(x.get(), subject) && set_times(x.get(), validity) &&
                  X509_set_pubkey(x.get(), key) == 1;
  if (!ok) return failed("a certificate cannot be made");
  return x;
}

}  // namespace

Result<std::vector<Certificate>> read_certificates(std::string_view pem) {
  std::vector<Certificate> out;
  const BioPtr in = read_from(pem);
  while (in) {
    const X509Ptr x(PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr));
    if (!x) break;
    auto one = describe(x.get());
    if (!one) return fail(one.error());
    out.push_back(std::move(*one));
  }
  // Running out of text is the only right end.
  const unsigned long last = ERR_peek_last_error();
  const bool ended =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended || out.empty()) {
    return fail(Code::kInvalid, "bad_certificate",
                out.empty() ? "there is no readable certificate in PEM"
                            : "a certificate in it cannot be read");
  }
  return out;
}

Status check_key(const Certificate& certificate, std::string_view key_pem) {
  auto x = parse_certificate(certificate.pem);
  if (!x) return fail(x.error());
  auto key = parse_key(key_pem);
  if (!key) return fail(key.error());
  const bool same = X509_check_private_key(x->get(), key->get()) == 1;
  ERR_clear_error();
  if (same) return {};
  return fail(Code::kInvalid, "key_mismatch", "the private key is not that of the certificate");
}

Status check_issuer(const Certificate& certificate, const Certificate& issuer) {
  auto x = parse_certificate(certificate.pem);
  auto above = parse_certificate(issuer.pem);
  if (!x || !above) return fail(x ? above.error() : x.error());
  EVP_PKEY* key = X509_get0_pubkey(above->get());
  const bool signed_by = key && X509_check_issued(above->get(), x->get()) == X509_V_OK &&
                         X509_verify(x->get(), key) == 1;
  ERR_clear_error();
  if (signed_by) return {};
  return fail(Code::kInvalid, "wrong_issuer", "the certificate was not signed by that authority");
}

Result<std::string> make_key() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const BioPtr text(BIO_new(BIO_s_mem()));
  const bool ok = key && text &&
                  PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                                nullptr) == 1;
  if (!ok) return failed("a private key cannot be made");
  return text_of(text.get());
}

Result<Certificate> make_authority(std::string_view key_pem, Validity validity) {
  auto key = parse_key(key_pem);
  if (!key) return fail(key.error());
  std::array<unsigned char, 4> tag;
  if (RAND_bytes(tag.data(), tag.size()) != 1) return failed("a certificate cannot be made");
  // Two authorities of the same name would be confused when they stand in one file.
  auto x =
      blank(key->get(),
            fmt::format("clusterctl CA {:02x}{:02x}{:02x}{:02x}", tag[0], tag[1], tag[2], tag[3]),
            validity);
  if (!x) return fail(x.error());
  X509* ca = x->get();
  const bool ok = X509_set_issuer_name(ca, X509_get_subject_name(ca)) == 1 &&
                  add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                  add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                  add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
                  X509_sign(ca, key->get(), EVP_sha256()) > 0;
  if (!ok) return failed("a certificate cannot be made");
  return describe(ca);
}

Result<Certificate> issue(const Certificate& authority, std::string_view authority_key,
                          std::string_view key_pem, const std::set<std::string>& names,
                          Validity validity) {
  auto ca = parse_certificate(authority.pem);
  if (!ca) return fail(ca.error());
  auto ca_key = parse_key(authority_key);
  if (!ca_key) return fail(ca_key.error());
  auto key = parse_key(key_pem);
  if (!key) return fail(key.error());
  auto x = blank(key->get(), "clusterctl", validity);
  if (!x) return fail(x.error());
  X509* leaf = x->get();
  const bool ok = X509_set_issuer_name(leaf, X509_get_subject_name(ca->get())) == 1 &&
                  add_extension(leaf, ca->get(), NID_basic_constraints, "critical,CA:FALSE") &&
                  add_extension(leaf, ca->get(), NID_key_usage, "critical,digitalSignature") &&
                  add_extension(leaf, ca->get(), NID_ext_key_usage, "serverAuth") &&
                  add_extension(leaf, ca->get(), NID_subject_key_identifier, "hash") &&
                  add_extension(leaf, ca->get(), NID_authority_key_identifier, "keyid") &&
                  add_names(leaf, names) && X509_sign(leaf, ca_key->get(), EVP_sha256()) > 0;
  if (!ok) return failed("a certificate cannot be made");
  return describe(leaf);
}

std::string canonical_name(std::string_view name) {
  std::string text = lower(name);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  text = text.substr(0, text.find('%'));
  in6_addr v6{};
  in_addr v4{};
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return text;
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    return inet_ntop(AF_INET6, &v6, buffer.data(), buffer.size());
  }
  if (text.ends_with('.')) text.pop_back();
  const bool good = !text.empty() && text.size() <= kMaxName &&
                    std::all_of(text.begin(), text.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '-' || c == '.' || c == '_';
                    });
  return good ? text : "";
}

std::optional<std::string> parse_fingerprint(std::string_view text) {
  std::string out;
  for (const unsigned char c : lower(trim(text))) {
    if (c == ':') continue;
    if (!std::isxdigit(c)) return std::nullopt;
    out += static_cast<char>(c);
  }
  if (out.size() != 64) return std::nullopt;
  return out;
}

}  // namespace clusterctl::access
