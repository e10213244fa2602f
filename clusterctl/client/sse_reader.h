// Server-sent events: an incremental parser, and a follower that connects again with its cursor
// when the connection breaks, so that a restart of the daemon is a pause and not an end. One
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "client/rest_client.h"

namespace clusterctl::client {

struct SseMessage {
  std::string id;  // the last id seen, also when this very message had none
  std::string event = "message";
  std::string data;
};
using OnMessage = std::function<bool(const SseMessage&)>;  // false: enough

class SseParser {
 public:
  static constexpr size_t kMaxLine = 1 << 20;
  static constexpr size_t kMaxData = 4 << 20;

  // Calls `on_message` for every message completed by this piece. False when it had enough, or the
  // text passed a limit (see broken()).
  bool feed(std::string_view piece, const OnMessage& on_message);
  bool broken() const { return broken_; }
  const std::string& last_id() const { return last_id_; }

 private:
  bool take_line(const OnMessage& on_message);
  void take_field(std::string_view name, std::string_view value);

  std::string line_;
  std::string event_, data_, last_id_;
  bool has_data_ = false, skip_lf_ = false, first_line_ = true, broken_ = false;
};

// Time for the follower, so that tests need none.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual std::chrono::milliseconds now() const = 0;  // monotonic
  virtual void sleep(std::chrono::milliseconds d) = 0;
};
class SystemTimer final : public Timer {
 public:
  std::chrono::milliseconds now() const override;
  void sleep(std::chrono::milliseconds d) override;
};

struct Follow {
  Request request;
  std::string cursor;                              // value of `since`; empty: from the start
  std::chrono::milliseconds give_up_after{30000};  // without a connection
  OnMessage on_message;
  KeepGoing keep_going;
  std::function<void()> on_lost;  // once for each break
};

// True: on_message had enough. False: keep_going said no. Errors that a new attempt cannot cure
// (404, 401 …) end it at once, a lost connection and 503 after `give_up_after`.
Result<bool> follow(RestClient& rest, Timer& timer, Follow what);

}  // namespace clusterctl::client
