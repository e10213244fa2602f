// Reads requests off a connection, a piece at a time, within hard limits and without leniency: what
// two programs could understand differently is refused. It stands in front of the HTTP library, so
// nothing reaches the library that has not passed here. Not thread-safe; one per connection. No
// I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http.h"

namespace clusterctl::api {

struct RequestLimits {
  size_t request_line = 8 << 10;
  size_t header_bytes = 64 << 10;  // all fields of one request together, trailers included
  size_t header_count = 100;
  size_t body = 1 << 20;  // after de-chunking
};

// A request that has passed the reader.
struct RawRequest {
  std::string method;
  std::string target;
  int minor = 1;  // HTTP/1.minor
  Headers headers;
  std::string body;
  bool keep_alive = true;
};

// Why a request was refused: status and the words of its problem document.
struct Rejection {
  int status = 400;
  std::string reason;
  std::string message;
};

class RequestReader {
 public:
  enum class State { kMore, kReady, kBad };

  explicit RequestReader(const RequestLimits& limits) : limits_(limits) {}

  // Adds received bytes (possibly none) and reads as far as they go. After kReady the rest waits
  // for take(); after kBad nothing more is accepted, and the connection is to be closed after the
  // answer.
  State feed(std::string_view bytes);
  State state() const { return state_; }

  // The request that is ready. The reader starts over with what followed it; call feed("") to go on
  // with that.
  RawRequest take();
  // Method and version as far as they are known, for the answer to a bad request.
  const RawRequest& partial() const { return request_; }
  const Rejection& rejection() const { return rejection_; }

  // Nothing of the next request has arrived.
  bool idle() const { return step_ == Step::kRequestLine && pos_ == buffer_.size(); }
  // The head is complete and the client waits for "100 Continue"; true only once per request.
  bool take_expectation();
  // Bytes of memory held for this connection.
  size_t held() const { return buffer_.size() + request_.body.size(); }

 private:
  enum class Step { kRequestLine, kHeaders, kBody, kChunkSize, kChunkData, kChunkEnd, kTrailers };

  bool step();  // one line or piece; false: needs more, or the state has changed
  bool next_line(size_t limit, std::string_view& line);
  bool request_line();
  bool header_line();
  bool field(std::string_view line, std::string& name, std::string& value);
  bool head_complete();
  bool check_framing();
  bool check_body_kind();
  bool take_body(size_t& missing);
  bool chunk_size();
  bool ready();
  bool refuse(int status, std::string_view reason, std::string_view message);

  RequestLimits limits_;
  State state_ = State::kMore;
  Step step_ = Step::kRequestLine;
  std::string buffer_;
  size_t pos_ = 0;   // start of what is not yet understood
  size_t scan_ = 0;  // no line end before here
  RawRequest request_;
  Rejection rejection_;
  size_t header_bytes_ = 0, header_count_ = 0;
  size_t missing_ = 0;         // bytes still to come of the body or chunk
  size_t chunk_overhead_ = 0;  // bytes of chunk framing seen
  bool skipped_blank_ = false;
  bool expects_continue_ = false;
};

}  // namespace clusterctl::api
