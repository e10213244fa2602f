// contiv's spellings for which there is no route: refused, with what does it here. Those that have
// one are aliases of our commands (node get, job get, global set -e …).
#include "cli/contiv_commands.h"
#include "cli/session.h"

namespace clusterctl::cli {
namespace {

// One command of contiv's: what takes its place, in one line.
struct Spelling {
  const char* name;
  const char* summary;
  const char* message;
  const char* instead;
};

constexpr Spelling kDiscover{
    "discover", "Find machines by their addresses (not built)", "discovery is not built",
    "clusterctl node add NAME --addr ADDRESS puts a machine into the inventory"};
constexpr Spelling kConfigGet{
    "get", "Where the settings are", "the daemon's settings are not shown here",
    "they stand in its file, /etc/clusterctl/clusterctl.yml; clusterctl cluster info shows those "
    "of the cluster"};
constexpr Spelling kConfigSet{
    "set", "How the settings are changed", "the daemon's settings are not changed here",
    "change its file, clusterctl serve --check-config, restart it; clusterctl cluster update "
    "changes those of the cluster, clusterctl global set variables"};

class Refused final : public Command {
 public:
  explicit Refused(const Spelling& spelling)
      : Command(spelling.name, spelling.summary), spelling_(spelling) {
    details = std::string("Instead: ") + spelling.instead + ".";
    needs_server = false;
  }
  void options(Options& o) override {
    o.arguments("ARGUMENTS", given_, "as contiv's command takes them");
    o.list("-e,--extra-vars", "JSON", vars_, "as contiv's command takes them");
  }
  Result<int> run(Session&) override {
    return fail(Code::kInvalid, "usage", spelling_.message, spelling_.instead);
  }

 private:
  const Spelling& spelling_;
  std::vector<std::string> given_, vars_;
};

}  // namespace

CommandPtr make_discover() {
  return std::make_unique<Refused>(kDiscover);
}

Noun config_noun() {
  Noun noun{"config", "Where settings are shown and changed instead", {}, {}, nullptr};
  noun.commands.push_back(std::make_unique<Refused>(kConfigGet));
  noun.commands.push_back(std::make_unique<Refused>(kConfigSet));
  return noun;
}

}  // namespace clusterctl::cli
