#include "cli/cluster_commands.h"
#include "cli/session.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

class ClusterUpdate final : public Command {
 public:
  ClusterUpdate() : Command("update", "Change the settings of the cluster") {
    details =
        "drift policy: what follows when a node differs from what was applied to it. never: it is "
        "only marked;\n"
        "ask: clusterctl status names it as well; auto: an update or verify job is begun, within "
        "--max-unavailable.\n"
        "The name can be changed only while no node is commissioned.\n"
        "Example: clusterctl cluster update --drift-policy auto --max-unavailable 10%";
  }
  void options(Options& o) override {
    o.value("--name", "NAME", name_, "name of the cluster");
    o.value("--accept-policy", "WORD", accept_, "always: new nodes are accepted; manual: they wait")
        .choices = {"always", "manual"};
    o.value("--max-unavailable", "N|N%", budget_, "workers that may be down at once");
    o.value("--drift-policy", "WORD", drift_, "never, ask or auto").choices = {"never", "ask",
                                                                               "auto"};
    o.flag("--plan", plan_, "only show what the settings would be");
    o.value("--if-match", "VERSION", version_, "only if the cluster is at this version");
  }
  Result<int> run(Session& session) override {
    Json body = Json::object();
    const auto put = [&body](const char* key, const std::string& value) {
      if (!value.empty()) body[key] = value;
    };
    put("name", name_);
    put("accept_policy", accept_);
    put("max_unavailable", budget_);
    put("drift_policy", drift_);
    if (body.empty()) {
      return fail(Code::kInvalid, "usage", "give a setting: nothing was changed",
                  "clusterctl cluster update --help");
    }
    std::map<std::string, std::string> headers;
    if (!version_.empty()) headers["If-Match"] = "\"" + version_ + "\"";
    auto cluster = session.call("PATCH", plan_ ? "/v1/cluster?dry_run=true" : "/v1/cluster",
                                std::move(body), headers);
    if (!cluster) return fail(cluster.error());
    if (session.structured()) {
      session.data(*cluster);
      return kExitOk;
    }
    Table table({"NAME", "ACCEPT-POLICY", "MAX-UNAVAILABLE", "DRIFT-POLICY"});
    table.add({text(*cluster, "name"), text(*cluster, "accept_policy"),
               text(*cluster, "max_unavailable"), text(*cluster, "drift_policy")});
    if (!session.names_only()) session.terminal.out(session.rendered(table));
    if (plan_) session.next("nothing was done; the same without --plan does it");
    return kExitOk;
  }

 private:
  std::string name_, accept_, budget_, drift_, version_;
  bool plan_ = false;
};

}  // namespace

CommandPtr make_cluster_update() {
  return std::make_unique<ClusterUpdate>();
}

}  // namespace clusterctl::cli
