// Writes answers with cpp-httplib; the only file that knows this library is httplib_codec.cpp. Not
// thread-safe: one per thread.
//
// The library is given a request head of our own making that says no more than it needs (HEAD or
// not, gzip or not), never the client's: requests are read by RequestReader, whose limits the
// library lacks.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "api/http.h"
#include "api/request_reader.h"

namespace clusterctl::api {

class HttplibCodec {
 public:
  // `idle`: how long a connection is kept between requests; told to clients.
  explicit HttplibCodec(std::chrono::milliseconds idle);
  ~HttplibCodec();
  HttplibCodec(const HttplibCodec&) = delete;
  HttplibCodec& operator=(const HttplibCodec&) = delete;

  // The bytes of a whole answer. A shared body is left out when the client takes it as it is: then
  // what comes back is the head alone, and `body` what follows it.
  std::string encode(const RawRequest& request, const Response& response, bool keep_alive,
                     SharedText& body);
  std::string encode(const RawRequest& request, const Response& response, bool keep_alive);

 private:
  class Server;
  const std::chrono::seconds idle_;
  std::unique_ptr<Server> server_;
};

// The head of an answer that is a stream: chunked for HTTP/1.1, else ended by closing the
// connection.
std::string stream_head(const RawRequest& request, const Response& response);

}  // namespace clusterctl::api
