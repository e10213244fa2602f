#include "api/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace clusterctl::api {
namespace {

constexpr size_t kRecord = 16 << 10;  // what one record of TLS carries
// Bytes taken from the socket in one call. Without it a client that sends records without content
// as fast as we can read them would keep the thread of all connections for itself.
constexpr size_t kBudget = 64 << 10;
// Forward secrecy and authenticated encryption only; those of TLS 1.3 all are.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::string reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  std::string out = text ? text : "the connection broke off";
  ERR_clear_error();
  return out;
}

struct BioDelete {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct CertificateDelete {
  void operator()(X509* x) const { X509_free(x); }
};
struct KeyDelete {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct SslDelete {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using BioPtr = std::unique_ptr<BIO, BioDelete>;
using CertificatePtr = std::unique_ptr<X509, CertificateDelete>;
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyDelete>;
using SslPtr = std::unique_ptr<SSL, SslDelete>;

BioPtr text_bio(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

int no_passphrase(char*, int, int, void*) {
  return -1;
}

bool use_chain(SSL_CTX* context, const std::string& pem) {
  const BioPtr in = text_bio(pem);
  bool first = true;
  while (in) {
    const CertificatePtr x(PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr));
    if (!x) break;
    const long used = first ? SSL_CTX_use_certificate(context, x.get())
                            : SSL_CTX_add1_chain_cert(context, x.get());
    if (used != 1) return false;
    first = false;
  }
  if (!first) ERR_clear_error();  // the end of the text
  return !first;
}

bool use_key(SSL_CTX* context, const std::string& pem) {
  const BioPtr in = text_bio(pem);
  const KeyPtr key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr)
                      : nullptr);
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

// The socket under an SSL object, with a bound on what is read in one call.
struct Wire {
  Fd fd;
  size_t budget = 0;
  uint64_t received = 0;
};

int read_wire(BIO* bio, char* data, size_t size, size_t* n) {
  Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *n = 0;
  if (wire.budget == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  const ssize_t got = recv(wire.fd.get(), data, std::min(size, wire.budget), MSG_DONTWAIT);
  if (got > 0) {
    *n = static_cast<size_t>(got);
    wire.budget -= *n;
    wire.received += *n;
    return 1;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return 0;
}

int write_wire(BIO* bio, const char* data, size_t size, size_t* n) {
  const Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *n = 0;
  const ssize_t sent = send(wire.fd.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) {
    *n = static_cast<size_t>(sent);
    return 1;
  }
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return 0;
}

long control_wire(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Made once and never freed: connections of the last moment may still use it.
const BIO_METHOD* wire_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read_ex(m, read_wire);
    BIO_meth_set_write_ex(m, write_wire);
    BIO_meth_set_ctrl(m, control_wire);
    return m;
  }();
  return kMethod;
}

class TlsStream final : public ByteStream {
 public:
  // `context`: kept alive as long as the connection is.
  TlsStream(Fd fd, SslPtr ssl, std::shared_ptr<const void> context)
      : context_(std::move(context)), ssl_(std::move(ssl)) {
    wire_.fd = std::move(fd);
    BIO* bio = BIO_new(wire_method());
    if (!bio) return;  // no memory: the first read fails
    BIO_set_data(bio, &wire_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

  Io read(char* data, size_t size, size_t& n) override {
    if (broken_) return Io::kGone;
    wire_.budget = kBudget;
    ERR_clear_error();
    return outcome(SSL_read_ex(ssl_.get(), data, size, &n));
  }

  // One record at a time, gathered from the parts, because each costs a header and a tag.
  Io write(const iovec* parts, size_t count, size_t& n) override {
    if (broken_) return Io::kGone;
    std::array<char, kRecord> record;
    size_t size = 0;
    for (size_t i = 0; i < count && size < record.size(); ++i) {
      const size_t piece = std::min(parts[i].iov_len, record.size() - size);
      std::memcpy(record.data() + size, parts[i].iov_base, piece);
      size += piece;
    }
    wire_.budget = kBudget;
    ERR_clear_error();
    return outcome(SSL_write_ex(ssl_.get(), record.data(), size, &n));
  }

  void finish() override {
    ERR_clear_error();
    if (!broken_ && established_) SSL_shutdown(ssl_.get());
    broken_ = true;
    ERR_clear_error();
    shutdown(wire_.fd.get(), SHUT_WR);
  }

  Fd release() override {
    broken_ = true;
    return std::move(wire_.fd);
  }
  int fd() const override { return wire_.fd.get(); }
  uint32_t waits_for() const override { return waits_for_; }
  bool established() const override { return established_; }
  uint64_t received() const override { return wire_.received; }

 private:
  Io outcome(int done) {
    established_ = established_ || SSL_is_init_finished(ssl_.get());
    if (done == 1) return Io::kDone;
    const int error = SSL_get_error(ssl_.get(), done);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      waits_for_ = error == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
      return Io::kBlocked;
    }
    broken_ = true;
    if (!established_) log::debug("a TLS handshake failed: {}", reason());
    ERR_clear_error();
    return Io::kGone;
  }

  const std::shared_ptr<const void> context_;
  Wire wire_;
  SslPtr ssl_;  // after the wire that its BIO points to
  uint32_t waits_for_ = EPOLLIN;
  bool established_ = false;
  bool broken_ = false;
};

}  // namespace

struct TlsServer::Context {
  Context() : ssl(SSL_CTX_new(TLS_server_method())) {}
  ~Context() { SSL_CTX_free(ssl); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Status fill(const std::string& chain, const std::string& key) {
    ERR_clear_error();
    const bool ok = ssl && SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 &&
                    SSL_CTX_set_cipher_list(ssl, kCiphers12) == 1 &&
                    SSL_CTX_set_num_tickets(ssl, 0) == 1 && use_chain(ssl, chain) &&
                    use_key(ssl, key);
    if (!ok) {
      return fail(Code::kInvalid, "bad_certificate",
                  fmt::format("the certificate cannot be used for TLS: {}", reason()));
    }
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    // An idle connection holds no buffers; a piece of an answer may be sent from another address
    // when it is tried again, and goes out in parts.
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return {};
  }

  SSL_CTX* ssl;
};

TlsServer::~TlsServer() = default;

Result<std::shared_ptr<TlsServer>> TlsServer::make(const std::string& chain,
                                                   const std::string& key) {
  std::shared_ptr<TlsServer> out(new TlsServer());
  if (auto ok = out->replace(chain, key); !ok) return fail(ok.error());
  return out;
}

Status TlsServer::replace(const std::string& chain, const std::string& key) {
  auto context = std::make_shared<Context>();
  if (auto ok = context->fill(chain, key); !ok) return ok;
  const MutexLock lock(mutex_);
  context_ = std::move(context);
  return {};
}

std::unique_ptr<ByteStream> TlsServer::accept(Fd fd) const {
  std::shared_ptr<const Context> context;
  {
    const MutexLock lock(mutex_);
    context = context_;
  }
  SslPtr ssl(SSL_new(context->ssl));
  if (!ssl) return nullptr;
  return std::make_unique<TlsStream>(std::move(fd), std::move(ssl), std::move(context));
}

}  // namespace clusterctl::api
