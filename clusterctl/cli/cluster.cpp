// The cluster as its own members see it: `manager ls`, `cluster info`.
#include <fmt/format.h>

#include "base/strings.h"
#include "cli/attach.h"
#include "cli/cluster_commands.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr std::chrono::milliseconds kLookAgain{200};

// The observation that is being made, if there is one already.
Result<Json> running_observation(Session& session) {
  auto answer = session.get("/v1/jobs", {{"kind", "observe"}, {"limit", "1"}});
  if (!answer) return answer;
  const Json& jobs = field(*answer, "jobs");
  return jobs.is_array() && !jobs.empty() ? jobs[0] : Json::object();
}

// An observation by all managers, waited for.
Status observe(Session& session) {
  auto job = session.call("POST", "/v1/jobs", {{"kind", "observe"}});
  if (!job && job.error().reason == "duplicate") job = running_observation(session);
  if (!job) return fail(job.error());
  const std::string id = text(*job, "id");
  while (!id.empty() && !is_final_state(text(*job, "state"))) {
    session.timer.sleep(kLookAgain);
    job = session.get("/v1/jobs/" + id);
    if (!job) return fail(job.error());
  }
  if (id.empty() || text(*job, "state") == "succeeded") return {};
  return fail(Code::kJobFailed, "observe_failed",
              fmt::format("the managers could not be asked: {}", text(*job, "error")),
              fmt::format("clusterctl job inspect {}", id));
}

std::string part(const Json& manager, const std::string& service) {
  return text(field(manager, "services"), service);
}

std::string seen_line(const Json& answer) {
  const std::string observed = short_time(field(answer, "observed"));
  return observed.empty() ? "never observed"
                          : fmt::format("as seen by {} {}", text(answer, "scheduler"), observed);
}

class ManagerLs final : public Command {
 public:
  ManagerLs() : Command("ls", "The managers as the scheduler itself sees them") {
    aliases = {"list"};
    details =
        "STATUS, ETCD: Leader, Reachable, Unreachable by the last observation, whose time stands "
        "below; Unknown: a\n"
        "manager here that the scheduler does not list. VIP: who held the virtual address then.\n"
        "--refresh asks the managers now, by a job of kind observe.";
  }
  void options(Options& o) override { o.flag("--refresh", refresh_, "ask the managers now"); }
  Result<int> run(Session& session) override {
    if (refresh_) {
      if (auto done = observe(session); !done) return fail(done.error());
    }
    auto answer = session.get("/v1/managers");
    if (!answer) return fail(answer.error());
    const Json& managers = field(*answer, "managers");
    if (session.structured()) {
      session.data(*answer);
    } else if (session.names_only()) {
      for (const Json& m : managers) session.line(text(m, "name"));
    } else {
      Table table({"NAME", "STATUS", "AVAILABILITY", "ETCD", "VIP", "NODE"});
      for (const Json& m : managers) {
        table.add({text(m, "name"), text(m, "status"), text(m, "availability"), part(m, "etcd"),
                   field(m, "holds_vip") == true ? "holder" : "", text(m, "lifecycle")});
      }
      session.terminal.out(table.render());
      session.note(seen_line(*answer));
    }
    return kExitOk;
  }

 private:
  bool refresh_ = false;
};

std::string line(std::string_view key, const std::string& value) {
  return value.empty() ? "" : fmt::format("{:<14}{}\n", fmt::format("{}:", key), value);
}

// "3 members, 3 reachable, 1 more may fail, leader node1"
std::string margin(const Json& service) {
  const std::string leader = text(service, "leader");
  return fmt::format("{}, {} reachable, {} more may fail{}{}",
                     count(static_cast<size_t>(number(field(service, "members"))), "member"),
                     text(service, "reachable"), text(service, "tolerates"),
                     leader.empty() ? "" : ", leader ", leader);
}

class ClusterInfo final : public Command {
 public:
  ClusterInfo()
      : Command("info", "Name, nodes, leader, how many may fail, virtual address, endpoints") {}
  Result<int> run(Session& session) override {
    auto cluster = session.get("/v1/cluster");
    if (!cluster) return fail(cluster.error());
    auto status = session.get("/v1/status");
    if (!status) return fail(status.error());
    auto services = session.get("/v1/services");
    if (!services) return fail(services.error());
    auto version = session.get("/v1/version");
    if (!version) return fail(version.error());
    const std::string ca = text(*version, "ca_fingerprint");
    const Json& quorum = field(*status, "services");
    const Json& list = field(*services, "services");
    if (session.structured()) {
      session.data({{"cluster", *cluster},
                    {"nodes", field(*status, "nodes")},
                    {"quorum", quorum},
                    {"vip", field(*status, "vip")},
                    {"services", list},
                    {"ca_fingerprint", ca}});
      return kExitOk;
    }
    std::string out = line("Cluster", text(*cluster, "name")) + line("Id", text(*cluster, "id")) +
                      line("Nodes", node_counts(field(*status, "nodes")));
    if (quorum.is_object()) {
      for (const auto& [name, s] : quorum.items()) out += line(clean(name), margin(s));
    }
    out += line("VIP", vip(field(*status, "vip")));
    for (const Json& s : list) {
      const auto endpoints = texts(field(s, "endpoints"));
      if (!endpoints.empty()) out += line("At", text(s, "name") + " " + join(endpoints, ", "));
    }
    out += line("Acceptance", text(*cluster, "accept_policy")) +
           line("Unavailable", "at most " + text(*cluster, "max_unavailable") + " of the workers");
    out += line("CA SHA-256", ca);
    session.terminal.out(out);
    return kExitOk;
  }

 private:
  static std::string node_counts(const Json& nodes) {
    std::vector<std::string> parts;
    if (nodes.is_object()) {
      for (const auto& [word, n] : nodes.items()) {
        if (word != "total" && number(n) > 0)
          parts.push_back(fmt::format("{} {}", number(n), clean(word)));
      }
    }
    return text(nodes, "total") + (parts.empty() ? "" : " (" + join(parts, ", ") + ")");
  }

  static std::string vip(const Json& vip) {
    if (!vip.is_object()) return "";
    const auto holders = texts(field(vip, "holders"));
    return text(vip, "address") +
           (holders.empty() ? ", held by nobody" : ", held by " + join(holders, ", "));
  }
};

}  // namespace

Noun manager_noun() {
  Noun noun{"manager", "The managers, as the scheduler sees them", {"managers"}, {}, nullptr};
  noun.commands.push_back(std::make_unique<ManagerLs>());
  return noun;
}

Noun cluster_noun() {
  Noun noun{"cluster", "The cluster as a whole", {}, {}, nullptr};
  noun.commands.push_back(std::make_unique<ClusterInfo>());
  noun.commands.push_back(make_cluster_update());
  noun.commands.push_back(make_cluster_token());
  noun.commands.push_back(make_cluster_init());
  noun.commands.push_back(make_cluster_join());
  noun.commands.push_back(make_cluster_leave());
  return noun;
}

}  // namespace clusterctl::cli
