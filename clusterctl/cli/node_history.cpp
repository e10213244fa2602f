#include <fmt/format.h>

#include "cli/node_commands.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

class NodeHistory final : public Command {
 public:
  NodeHistory() : Command("history", "What happened to a node, the newest first: by whom and why") {
    details =
        "States, conditions, changes of what is wanted, ends of jobs. The last 100 entries of a "
        "node are kept, at most a\n"
        "year, and go with it. JOB: clusterctl job inspect JOB.";
  }
  void options(Options& o) override {
    o.argument("NAME", name_, "name or id of the node");
    o.number("--limit", "N", limit_, "at most so many");
  }
  Result<int> run(Session& session) override {
    Query query;
    if (limit_) query.emplace_back("limit", std::to_string(*limit_));
    auto answer = session.get("/v1/nodes/" + client::escape(name_) + "/history", query);
    if (!answer) return fail(answer.error());
    const Json& entries = field(*answer, "history");
    if (session.structured()) {
      session.data(entries);
      return kExitOk;
    }
    Table table({"TIME", "WHAT", "BY", "JOB", "REASON"});
    for (const Json& e : entries)
      table.add({short_time(field(e, "time")), text(e, "message"), text(e, "by"), text(e, "job"),
                 text(e, "reason")});
    session.terminal.out(session.rendered(table));
    return kExitOk;
  }

 private:
  std::string name_;
  std::optional<int64_t> limit_;
};

}  // namespace

CommandPtr make_node_history() {
  return std::make_unique<NodeHistory>();
}

}  // namespace clusterctl::cli
