// What a job is doing, node by node, out of its event stream (docs/rest.md, Streams): lines to
// append, and a block to redraw. A passive value; time comes with the events or as an argument.
// Events are untrusted. One thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {

class Progress {
 public:
  using Ms = std::chrono::milliseconds;

  explicit Progress(const std::vector<std::string>& nodes);

  // The lines that this event is worth when nothing can be redrawn; `now` is any monotonic time,
  // for elapsed times between events.
  std::vector<std::string> feed(const client::SseMessage& message, Ms now);
  // One line for the stage, one for each node (at most `max_lines` in all), none wider than
  // `width`.
  std::vector<std::string> block(int width, int max_lines, Ms now) const;

  bool ended() const { return ended_; }

 private:
  struct Node {
    std::string service, task, failure;
    int changed = 0;
    bool in_stage = false;
    std::optional<Time> last;
  };

  std::vector<std::string> feed_state(const Json& document);
  std::vector<std::string> feed_task(const Json& event);
  std::vector<std::string> feed_result(const Json& event);
  std::vector<std::string> feed_stage(const Json& stage);
  std::vector<std::string> begin_stage(const std::string& key, const Json& stage);
  std::string since_start(const std::optional<Time>& t) const;
  Ms running(Ms now) const;
  std::string node_line(const std::string& name, const Node& node, size_t name_width) const;

  std::map<std::string, Node> nodes_;
  std::string stage_, stage_key_, service_, task_;
  std::optional<Time> first_, stage_start_, last_;
  Ms last_local_{};
  bool stage_over_ = false, ended_ = false, paused_ = false;
};

}  // namespace clusterctl::cli
