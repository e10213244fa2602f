// libcurl's handles as owners, for the rooms that talk HTTP outwards (they link libcurl, base does
// not). A handle belongs to one thread at a time.
#pragma once

#include <curl/curl.h>
#include <sys/socket.h>

#include <memory>

namespace clusterctl {

struct CurlDelete {
  void operator()(CURL* h) const { curl_easy_cleanup(h); }
};
struct CurlMultiDelete {
  void operator()(CURLM* h) const { curl_multi_cleanup(h); }
};
struct CurlListDelete {
  void operator()(curl_slist* l) const { curl_slist_free_all(l); }
};
using CurlEasy = std::unique_ptr<CURL, CurlDelete>;
using CurlMulti = std::unique_ptr<CURLM, CurlMultiDelete>;
using CurlList = std::unique_ptr<curl_slist, CurlListDelete>;

// For CURLOPT_OPENSOCKETFUNCTION: no program that is started meanwhile inherits the connection.
inline curl_socket_t open_curl_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace clusterctl
