#include <fmt/format.h>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {
namespace {

std::string event_line(const Json& e) {
  std::string out = fmt::format("{}  {:<15}", short_time(field(e, "time")), text(e, "type"));
  for (const char* key : {"node", "job"}) {
    if (const std::string value = text(e, key); !value.empty())
      out += fmt::format("  {}={}", key, value);
  }
  return out + "  " + text(e, "message");
}

class Events final : public Command {
 public:
  Events() : Command("events", "What happened in the fleet") {
    details =
        "One line an event: time, type, node, job, message. Types: node.added, node.updated, "
        "node.removed,\n"
        "node.lifecycle, node.condition, node.maintenance_overdue, node.presence, node.returned,\n"
        "job.queued, job.started,\n"
        "job.stage, job.ended, globals.updated, token.created, token.revoked, daemon.started. With "
        "-f "
        "and -o json:\n"
        "one JSON object a line.";
  }
  void options(Options& o) override {
    o.flag("-f,--follow", follow_, "go on with what happens from now on");
    o.number("--since", "SEQ", since_, "only events after this number");
  }
  Result<int> run(Session& session) override {
    if (follow_) return follow(session);
    Query query;
    if (since_) query.emplace_back("since", std::to_string(*since_));
    auto answer = session.get("/v1/events", query);
    if (!answer) return fail(answer.error());
    const Json& events = field(*answer, "events");
    if (session.structured()) {
      session.data(events);
      return kExitOk;
    }
    for (const Json& e : events) print(session, e);
    return kExitOk;
  }

 private:
  static void print(Session& session, const Json& e) {
    if (session.format == Format::kJson) {
      session.line(dump_json(e));
    } else if (session.format == Format::kYaml) {
      session.terminal.out("---\n");
      session.data(e);
    } else {
      session.line(session.names_only() ? text(e, "seq") : event_line(e));
    }
  }

  Result<int> follow(Session& session) {
    client::Follow what;
    what.request.path = "/v1/events";
    what.request.query = {{"follow", "true"}};
    if (since_) what.cursor = std::to_string(*since_);
    what.on_message = [&](const client::SseMessage& m) {
      const auto data = parse_json_object(m.data, "event");
      if (!data) return true;
      if (m.event == "gap") {
        session.note(fmt::format("events {} to {} are no longer kept", text(*data, "from"),
                                 text(*data, "to")));
      } else if (m.event == "event") {
        print(session, *data);
      }
      return true;
    };
    session.terminal.watch_interrupts(true);
    what.keep_going = [&] {
      return !session.terminal.interrupted() && !session.terminal.nobody_reads();
    };
    what.on_lost = [&] { session.note("connection lost, reconnecting"); };
    const auto ended = client::follow(session.rest, session.timer, std::move(what));
    session.terminal.watch_interrupts(false);
    if (!ended) return fail(ended.error());
    return session.terminal.nobody_reads() ? kExitOk : kExitDetached;
  }

  bool follow_ = false;
  std::optional<int64_t> since_;
};

}  // namespace

CommandPtr make_events() {
  return std::make_unique<Events>();
}

}  // namespace clusterctl::cli
