#include "cli/watch.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "cli/text.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kAtMostEvery{1000};
constexpr int kShareOfTime = 5;  // of five seconds at most one is spent on looking
constexpr milliseconds kWatchPatience{60000};
constexpr const char* kBeyondAllEvents = "9000000000000000000";

class InterruptsWatched {
 public:
  explicit InterruptsWatched(Terminal& t) : terminal_(t) { terminal_.watch_interrupts(true); }
  ~InterruptsWatched() { terminal_.watch_interrupts(false); }
  InterruptsWatched(const InterruptsWatched&) = delete;
  InterruptsWatched& operator=(const InterruptsWatched&) = delete;

 private:
  Terminal& terminal_;
};

class Picture {
 public:
  explicit Picture(Session& session)
      : session_(session),
        redraw_(session.terminal.can_redraw() && !session.structured() && !session.names_only()) {}

  void show(std::string text) {
    if (text == text_ && shown_ && !redraw_) return;
    text_ = std::move(text);
    if (redraw_) return draw("watching; Ctrl-C ends it");
    // A blank line tells where the next one begins.
    if (shown_ && !session_.structured()) session_.terminal.out("\n");
    session_.terminal.out(text_);
    shown_ = true;
  }

  void lost() {
    if (redraw_) return draw("connection lost, reconnecting; this was last seen");
    session_.note("connection lost, reconnecting");
  }

 private:
  // From the corner, line over line: nothing flickers, and a resized window is right again with the
  // next picture.
  void draw(const std::string& footer) {
    const int width = session_.terminal.width() - 1, height = session_.terminal.height() - 1;
    std::vector<std::string> lines = split(text_, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    const auto room = static_cast<size_t>(std::max(1, height - 1));
    if (lines.size() > room) {
      const size_t hidden = lines.size() - room + 1;
      lines.resize(room - 1);
      lines.push_back("… " + count(hidden, "more line"));
    }
    lines.push_back(footer);
    std::string out = shown_ ? "\x1b[H" : "\x1b[H\x1b[2J";
    for (const std::string& line : lines) out += fit(line, width) + "\x1b[K\n";
    session_.terminal.out(out + "\x1b[J");
    shown_ = true;
  }

  Session& session_;
  const bool redraw_;
  std::string text_;
  bool shown_ = false;
};

}  // namespace

Result<int> watch(Session& session, const Render& render) {
  session.compact = true;
  // What happens from here on will come over the stream, so nothing is missed between the two.
  auto newest = session.get("/v1/events", {{"since", kBeyondAllEvents}, {"limit", "1"}});
  if (!newest) return fail(newest.error());
  const auto stream = session.another();
  Picture picture(session);
  auto first = render();
  if (!first) return fail(first.error());
  picture.show(std::move(*first));

  milliseconds looked = session.timer.now(), pause = kAtMostEvery;
  bool changed = false;
  std::optional<Error> broken;
  const auto look = [&] {
    const auto begin = session.timer.now();
    auto text = render();
    looked = session.timer.now();
    pause = std::max(kAtMostEvery, kShareOfTime * (looked - begin));
    if (text) {
      changed = false;
      picture.show(std::move(*text));
    } else if (text.error().code != Code::kUnavailable) {
      broken = text.error();
    }
  };
  client::Follow what;
  what.request.path = "/v1/events";
  what.request.query = {{"follow", "true"}};
  what.cursor = text(*newest, "last");
  what.give_up_after = kWatchPatience;
  what.on_message = [&](const client::SseMessage&) { return changed = true; };
  what.on_lost = [&] {
    changed = true;
    picture.lost();
  };
  what.keep_going = [&] {
    if (session.terminal.interrupted() || session.terminal.nobody_reads()) return false;
    if (changed && session.timer.now() - looked >= pause) look();
    return !broken;
  };
  const InterruptsWatched watched(session.terminal);
  const auto ended = client::follow(*stream, session.timer, std::move(what));
  if (broken) return fail(std::move(*broken));
  if (!ended) return fail(ended.error());
  return session.terminal.nobody_reads() ? kExitOk : kExitDetached;
}

}  // namespace clusterctl::cli
