// HTTP as the rest of the program sees it: plain values for a request and its answer, and a pull
// interface for endless answers. The engine below (http_engine.h) may change without touching
// anything that includes only this header. Requests are handled by several worker threads at once;
// each Request and Response belongs to one of them. StreamSource says itself which thread calls it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/out_queue.h"
#include "base/error.h"
#include "base/json.h"

namespace clusterctl::api {

// Header fields in the order received; names compare without regard to case.
class Headers {
 public:
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  // The first field of that name.
  std::optional<std::string_view> get(std::string_view name) const;
  size_t count(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

enum class Transport { kUnix, kTcp };

// The other end of the connection, as the kernel knows it.
struct Peer {
  Transport transport = Transport::kUnix;
  std::string address;                 // "unix:<pid>", "127.0.0.1:51034", "[::1]:51034"
  uid_t uid = static_cast<uid_t>(-1);  // Unix socket only, like gid and pid
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = 0;
  std::vector<gid_t> groups;  // supplementary ones
  std::string local = {};     // TCP: our own address at this end, "127.0.0.1" or "[::1]"
};

// Who is asking, set by authentication before any handler runs. `name` is fit for Job.initiator:
// "uid:1000", "token", "token:ci".
struct Identity {
  std::string name;
  bool named_token = false;  // one of /v1/tokens, which may not make or revoke others
};

struct Request {
  std::string id;  // of this request, for the log; also sent back as X-Request-Id
  std::string
      method;  // as sent; a HEAD is handled by the GET handler and loses its body afterwards
  std::string target;                         // as sent: path and query
  std::vector<std::string> segments;          // of the path, percent-decoded, without NUL and slash
  std::map<std::string, std::string> params;  // what the {…} of the route matched; never empty
  std::map<std::string, std::string> query;   // percent-decoded; only names that the route declares
  Headers headers;
  std::string body;  // whole, within the limit, already de-chunked
  Peer peer;
  Identity identity;
  std::string route;  // the pattern that the path fits, set by the router; empty: none

  // What {name} of the route matched; "" if the route has no such parameter.
  const std::string& param(const std::string& name) const;
  // Query parameters: absent gives the fallback, a wrong form is kInvalid naming the parameter.
  std::string query_string(const std::string& name, std::string_view fallback = "") const;
  Result<int64_t> query_int(const std::string& name, int64_t fallback, int64_t min,
                            int64_t max) const;
  Result<bool> query_bool(const std::string& name,
                          bool fallback = false) const;  // true|false|1|0|"" (= true)
};

// The path on one line and not too long, without the query: what operators put there is not for the
// log. Tokens are masked.
std::string loggable_path(const Request& request);

// What many streams wait for together: the next event of the fleet, the growth of one file. So news
// cost one wake-up or one look, however many follow. All members are called by the stream thread.
class Topic {
 public:
  virtual ~Topic() = default;
  // A first stream waits for it. `wake` as in StreamSource::start().
  virtual void start(std::function<void()> wake) { (void)wake; }
  // The last one has gone; start() may come again.
  virtual void stop() {}
  // How often changed() is to be asked, if at all. It says whether there may be news since it was
  // asked last; true the first time.
  virtual std::optional<std::chrono::milliseconds> poll() const { return std::nullopt; }
  virtual bool changed() { return false; }
};

// One step of a stream.
struct StreamStep {
  enum class Kind { kData, kIdle, kEnd };
  Kind kind = Kind::kIdle;
  std::string text;              // kData, and last words of kEnd
  SharedText shared;             // kData: instead of text, when others get the same
  std::shared_ptr<Topic> topic;  // kIdle: ask again when it has news
  std::optional<std::chrono::milliseconds>
      poll_after;  // kIdle: ask again then, even without a wake

  static StreamStep data(std::string text) {
    return {Kind::kData, std::move(text), nullptr, nullptr, {}};
  }
  static StreamStep data(SharedText text) {
    return {Kind::kData, "", std::move(text), nullptr, {}};
  }
  static StreamStep idle() { return {}; }
  static StreamStep idle(std::chrono::milliseconds poll_after) {
    return {Kind::kIdle, "", nullptr, nullptr, poll_after};
  }
  static StreamStep idle(std::shared_ptr<Topic> topic) {
    return {Kind::kIdle, "", nullptr, std::move(topic), {}};
  }
  static StreamStep end(std::string text = "") {
    return {Kind::kEnd, std::move(text), nullptr, nullptr, {}};
  }
};

// The content of an endless answer. It owns a cursor (event number, file offset) and is pulled only
// when the client can take more, so a slow client costs no memory: a source that has been overtaken
// says so in its own words ("gap"). One thread serves all streams of the daemon, therefore:
//  * next() never waits; a bounded read of a local file (about 64 KiB) is fine. Return about that
//  much at most.
//  * All members are called by the stream thread, never at the same time. Destroyed there when the
//  client is gone, the stream has
//    ended or the daemon stops; the destructor must not wait for a thread that may be inside
//    wake().
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  // Called once before the first next(). `wake` means "next() may have news": callable from any
  // thread, cheap, never blocks for long, may be called under locks, too often, and after the
  // stream has gone (then it does nothing).
  virtual void start(std::function<void()> wake) { (void)wake; }
  virtual StreamStep next() = 0;
};

struct Response {
  int status = 200;
  std::string content_type;  // empty: no body
  std::string body;
  SharedText shared;  // instead of body: an answer that many get
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<StreamSource> stream;  // instead of body
  bool heartbeat = false;                // the stream is SSE: a comment line every 15 s of silence

  static Response json(const Json& value, int status = 200);
  // Bytes that are JSON already.
  static Response json(SharedText text);
  static Response text(std::string text, int status = 200);
  static Response no_content();
  // Server-sent events. Steps are built with sse_event().
  static Response sse(std::unique_ptr<StreamSource> source);
  // Long content that should not be held in memory at once; sent as it is, without heartbeat.
  static Response streamed(std::string content_type, std::unique_ptr<StreamSource> source);

  Response with(std::string name, std::string value) && {
    headers.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
  }
};

// An Error becomes application/problem+json (problem.h).
using Handler = std::function<Result<Response>(const Request&)>;

// One event of an SSE stream: "id: …\nevent: …\ndata: …\n\n". Empty id or event is left out.
std::string sse_event(std::string_view id, std::string_view event, std::string_view data);

}  // namespace clusterctl::api
