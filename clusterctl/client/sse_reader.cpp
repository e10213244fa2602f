#include "client/sse_reader.h"

#include <algorithm>
#include <thread>

namespace clusterctl::client {

bool SseParser::feed(std::string_view piece, const OnMessage& on_message) {
  for (const char c : piece) {
    if (broken_) return false;
    const bool after_cr = skip_lf_;
    skip_lf_ = false;
    if (c == '\n' && after_cr) continue;
    if (c == '\n' || c == '\r') {
      skip_lf_ = c == '\r';
      if (!take_line(on_message)) return false;
      continue;
    }
    if (line_.size() >= kMaxLine) {
      broken_ = true;
      return false;
    }
    line_ += c;
  }
  return !broken_;
}

bool SseParser::take_line(const OnMessage& on_message) {
  std::string line;
  line.swap(line_);
  if (first_line_ && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  first_line_ = false;
  if (!line.empty()) {
    const size_t colon = line.find(':');
    std::string_view value;
    if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    take_field(std::string_view(line).substr(0, colon), value);
    return !broken_;
  }
  SseMessage message;
  message.id = last_id_;
  if (!event_.empty()) message.event.swap(event_);
  message.data.swap(data_);
  event_.clear();
  data_.clear();
  const bool complete = has_data_;
  has_data_ = false;
  if (!complete) return true;
  message.data.pop_back();  // every data line added a newline
  return on_message(message);
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "event") event_ = value;
  if (name == "id" && value.find('\0') == std::string_view::npos) last_id_ = value;
  if (name == "data") {
    has_data_ = true;
    if (data_.size() + value.size() >= kMaxData) {
      broken_ = true;
      return;
    }
    data_ += value;
    data_ += '\n';
  }
}

std::chrono::milliseconds SystemTimer::now() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

void SystemTimer::sleep(std::chrono::milliseconds d) {
  std::this_thread::sleep_for(d);
}

Result<bool> follow(RestClient& rest, Timer& timer, Follow what) {
  using std::chrono::milliseconds;
  const KeepGoing keep_going = what.keep_going ? what.keep_going : [] { return true; };
  auto alive = timer.now();  // when the daemon was last heard
  bool enough = false;
  bool announced = false;
  milliseconds pause{100};
  for (;;) {
    SseParser parser;
    Request request = what.request;
    if (!what.cursor.empty()) request.query.emplace_back("since", what.cursor);
    const auto done = rest.stream(
        request,
        [&](std::string_view piece) {
          alive = timer.now();
          announced = false;
          pause = milliseconds{100};
          return parser.feed(piece, [&](const SseMessage& message) {
            if (!message.id.empty()) what.cursor = message.id;
            enough = !what.on_message(message);
            return !enough;
          });
        },
        keep_going);
    if (enough) return true;
    if (parser.broken()) {
      return fail(Code::kInternal, "bad_stream", "the daemon sent a line that is too long");
    }
    if (!keep_going()) return false;
    if (!done && done.error().code != Code::kUnavailable) return fail(done.error());
    if (timer.now() - alive >= what.give_up_after) {
      if (!done) return fail(done.error());
      return fail(Code::kUnavailable, "connection_lost", rest.server() + " closed the stream");
    }
    if (!announced && what.on_lost) what.on_lost();
    announced = true;
    timer.sleep(pause);
    pause = std::min(pause * 2, milliseconds{1000});
  }
}

}  // namespace clusterctl::client
