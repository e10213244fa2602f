#include <fmt/format.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/version_check.h"
#include "cli/watch.h"

namespace clusterctl::cli {
namespace {

std::string node_counts(const Json& nodes) {
  std::vector<std::string> parts;
  if (nodes.is_object()) {
    for (const auto& [word, n] : nodes.items()) {
      if (word != "total" && number(n) > 0) parts.push_back(fmt::format("{} {}", number(n), word));
    }
  }
  const std::string total = fmt::format("Nodes:    {}", number(field(nodes, "total")));
  return (parts.empty() ? total : total + " (" + join(parts, ", ") + ")") + "\n";
}

std::string vip_line(const Json& vip) {
  if (!vip.is_object()) return "";
  const std::vector<std::string> holders = texts(field(vip, "holders"));
  std::string out = "VIP:      " + text(vip, "address");
  if (holders.size() == 1) return out + " held by " + holders[0] + "\n";
  if (holders.empty()) return out + " held by nobody (as last seen)\n";
  return out + " held by several: " + join(holders, ", ") + "\n";
}

std::string jobs_table(const Session& session, std::string_view title, const Json& jobs) {
  Table table({"ID", "STATE", "TITLE", "ERROR"});
  for (const Json& job : jobs)
    table.add({text(job, "id"), text(job, "state"), text(job, "title"), text(job, "error")});
  return table.empty() ? "" : fmt::format("\n{}:\n{}", title, session.rendered(table));
}

class StatusCommand final : public Command {
 public:
  StatusCommand()
      : Command(
            "status",
            "The cluster at a glance: nodes, members and what they tolerate, VIP, jobs, problems") {
    details =
        "MEMBERS, REACHABLE: of each service that needs a majority, by the last observation.\n"
        "TOLERATES: so many more members may fail before the service stops.";
  }
  void options(Options& o) override {
    o.flag("-w,--watch", watch_, "show it again when something has changed, until Ctrl-C");
  }
  Result<int> run(Session& session) override {
    const auto look = [&] { return shown(session); };
    if (watch_) return watch(session, look);
    auto out = look();
    if (!out) return fail(out.error());
    session.terminal.out(*out);
    return kExitOk;
  }

 private:
  static Result<std::string> shown(Session& session) {
    auto answer = session.get("/v1/status");
    if (!answer) return fail(answer.error());
    if (session.structured()) return session.document(*answer);
    std::string out = node_counts(field(*answer, "nodes")) + vip_line(field(*answer, "vip"));
    Table services({"SERVICE", "MEMBERS", "REACHABLE", "TOLERATES", "LEADER"});
    const Json& all = field(*answer, "services");
    if (all.is_object()) {
      for (const auto& [name, s] : all.items()) {
        services.add({name, text(s, "members"), text(s, "reachable"), text(s, "tolerates"),
                      text(s, "leader")});
      }
    }
    if (!services.empty()) out += "\n" + session.rendered(services);
    out += jobs_table(session, "Running jobs", field(*answer, "running_jobs"));
    out += jobs_table(session, "Failed jobs", field(*answer, "failed_jobs"));
    std::string problems;
    for (const Json& p : field(*answer, "problems")) {
      const std::string node = text(p, "node");
      problems += fmt::format("  {}{}\n", node.empty() ? "" : node + ": ", text(p, "message"));
      if (const std::string hint = text(p, "hint"); !hint.empty())
        problems += "      hint: " + hint + "\n";
    }
    if (!problems.empty()) out += "\nProblems:\n" + problems;
    return out;
  }

  bool watch_ = false;
};

class VersionCommand final : public Command {
 public:
  VersionCommand() : Command("version", "Versions of this program and of the daemon") {}
  Result<int> run(Session& session) override {
    auto answer = session.get("/v1/version");
    const Json daemon = answer ? *answer : Json();
    if (session.structured()) {
      session.data({{"client", {{"version", session.version}, {"api", kApi}}}, {"daemon", daemon}});
    } else {
      session.line("client:    " + session.version);
      if (answer) {
        session.line("daemon:    " + text(daemon, "version"));
        session.line("api:       " + text(daemon, "api"));
        session.line("ansible:   " + text(daemon, "ansible"));
        session.line("playbooks: " + text(daemon, "playbooks"));
      }
    }
    if (!answer) return fail(answer.error());
    if (number(field(daemon, "api")) != kApi) {
      session.terminal.err(fmt::format("warning: this program speaks API {}, the daemon {}\n", kApi,
                                       text(daemon, "api")));
    } else if (text(daemon, "version") != session.version) {
      session.terminal.err(fmt::format("warning: this program is {}, the daemon {}\n",
                                       session.version, text(daemon, "version")));
    }
    return kExitOk;
  }
};

}  // namespace

CommandPtr make_status() {
  return std::make_unique<StatusCommand>();
}
CommandPtr make_version() {
  return std::make_unique<VersionCommand>();
}

}  // namespace clusterctl::cli
