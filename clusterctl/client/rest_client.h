// The command line's way to a daemon: requests, answers, streams. One thread per client. The
// interface knows HTTP's words but no transport, so that commands are tested against a fake; the
// real one (curl_client.h) speaks through libcurl.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace clusterctl::client {

// Asked about ten times a second while waiting; false: give up waiting.
using KeepGoing = std::function<bool()>;

struct Request {
  std::string method = "GET";
  std::string path;  // "/v1/nodes/n1"; variable parts through escape()
  std::vector<std::pair<std::string, std::string>> query;  // unescaped
  std::optional<Json> body;
  std::map<std::string, std::string> headers;  // e.g. Idempotency-Key, If-Match
  KeepGoing keep_going = nullptr;              // of send(); none: waits for the answer
};

struct Response {
  int status = 0;
  std::string etag;
  std::string text;  // the body
  Json json;         // the body, when the answer says that it is JSON
};

// Called with pieces of a body as they arrive; false: enough.
using Receive = std::function<bool(std::string_view)>;

class RestClient {
 public:
  virtual ~RestClient() = default;
  // An answer other than 2xx is an Error with the daemon's code, message, hint and problems.
  // kUnavailable: no answer; reason "unreachable" when no connection was made (the request cannot
  // have had an effect), "connection_lost" when it may have, "interrupted" when `keep_going` said
  // no.
  virtual Result<Response> send(const Request& request) = 0;
  // Hands the body on without collecting it and without a limit in time or size. Success: it ended,
  // or a callback said so.
  virtual Status stream(const Request& request, const Receive& receive,
                        const KeepGoing& keep_going) = 0;
  // Where this client talks to, for messages: "unix:/run/clusterctl/clusterctl.sock".
  virtual std::string server() const = 0;
};

// Percent-encodes everything but unreserved characters: one path segment or query value.
std::string escape(std::string_view text);
// Path and query as they stand in the request line.
std::string target(const Request& request);

// Of an answer that no daemon gives; `why` says what it is instead.
Error foreign_answer(std::string_view server, std::string_view why);
// The Error in an answer that is not 2xx: problem+json as far as it can be read, else one made of
// the status.
Error error_from_answer(int status, std::string_view body);

}  // namespace clusterctl::client
