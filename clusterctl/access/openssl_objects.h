// Owners of OpenSSL's objects, and its words for what went wrong. Only for the .cpp files of this
// room.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace clusterctl::access {

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using X509Ptr = std::unique_ptr<X509, FreeWith<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;

inline BioPtr read_from(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The last of the errors that OpenSSL keeps for this thread; forgets all of them.
inline std::string openssl_reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  std::string out = text ? text : "unknown reason";
  ERR_clear_error();
  return out;
}

}  // namespace clusterctl::access
