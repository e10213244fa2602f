// `node accept`: machines that wait are let in, with what an operator gives them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "base/ssh_key.h"
#include "base/strings.h"
#include "cli/each_node.h"
#include "cli/node_commands.h"
#include "cli/several.h"
#include "cli/text.h"
#include "cli/vars.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxFingerprintFile = 4 << 20;

// Fingerprints in a file as people make them: lines of ssh-keygen -l, of ssh-keyscan, public keys,
// or the bare "SHA256:…". What is none of them is an Error: a file that is not what its reader
// thinks must let nobody in.
Result<std::set<std::string>> read_fingerprints(const std::string& file) {
  const auto content = read_file(file, kMaxFingerprintFile);
  if (!content) return fail(content.error());
  std::set<std::string> out;
  size_t number = 0;
  for (const std::string& line : split(*content, '\n')) {
    ++number;
    const std::string t = trim(line);
    if (t.empty() || t[0] == '#') continue;
    std::string found;
    const auto words = split(t, ' ', true);
    for (size_t i = 0; i < words.size() && found.empty(); ++i) {
      if (words[i].starts_with("SHA256:")) found = words[i];
      if (found.empty() && i + 1 < words.size())
        found = ssh_fingerprint(words[i] + " " + words[i + 1]);
    }
    while (found.ends_with('=')) found.pop_back();
    if (found.size() != 7 + 43)
      return fail(Code::kInvalid, "bad_fingerprint",
                  fmt::format("{}:{}: there is no fingerprint of a host key", file, number),
                  "SHA256:… as ssh-keygen -lf shows it, or the public key itself");
    out.insert(std::move(found));
  }
  if (!out.empty()) return out;
  return fail(Code::kInvalid, "bad_fingerprint", fmt::format("{} holds no fingerprint", file),
              "one a line: SHA256:… as ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub shows it");
}

class NodeAccept final : public Command {
 public:
  NodeAccept() : Command("accept", "Let nodes that wait for it belong to the fleet") {
    details =
        "What they get is said at the same time; what a machine asked for when it joined (node "
        "inspect: Requested)\n"
        "counts only with --as-requested. --fingerprints FILE lets in, of the nodes that wait, "
        "those whose SSH host key\n"
        "is in the file (SHA256:…, as ssh-keygen -l or the machine's own join shows it), and lists "
        "the others.\n"
        "Examples: clusterctl node accept n7 --host-group service-worker --label rack=r3\n"
        "          clusterctl node accept --fingerprints rack3.txt -g service-worker";
  }
  void options(Options& o) override {
    o.arguments("NAMES", names_, "names or ids of the nodes");
    o.value("--fingerprints", "FILE", fingerprints_,
            "only nodes that wait and whose host key is in the file; without NAMES all of them");
    o.value("-g,--host-group", "GROUP", group_, "host group they get");
    o.list("--capability,--capabilities", "NAME", capabilities_, "what they may carry", true);
    o.list("--label", "K=V", labels_, "labels they get");
    o.flag("--as-requested", as_requested_, "give each what it asked for when it joined");
    o.value("--reason", "TEXT", reason_, "why; kept in the history of the node");
    o.flag("--plan", plan_, "only show what would change");
  }

  Result<int> run(Session& session) override {
    if (names_.empty() && fingerprints_.empty())
      return fail(Code::kInvalid, "usage", "name the nodes to accept",
                  "clusterctl node accept NAME…, or --fingerprints FILE");
    auto labels = parse_labels(labels_, false);
    if (!labels) return fail(labels.error());
    Json body = Json::object();
    if (!labels->empty()) body["labels"] = *labels;
    if (!group_.empty()) body["host_group"] = group_;
    if (!capabilities_.empty()) body["capabilities"] = capabilities_;
    if (!reason_.empty()) body["reason"] = reason_;
    auto targets = targets_of(session, body);
    if (!targets) return fail(targets.error());
    EachNode each(session, "POST", "/accept", body, accepted);
    return plan_ ? each.plan(*targets) : each.run(*targets, "accepted");
  }

 private:
  static Json accepted(const Json& body) {
    Json spec = body;
    spec.erase("reason");
    spec["acceptance"] = "accepted";
    return spec;
  }

  Result<std::vector<NodeTarget>> targets_of(Session& session, const Json& body) const {
    if (fingerprints_.empty() && !as_requested_) return named_nodes(session, names_);
    std::vector<NodeTarget> out;
    auto nodes = fingerprints_.empty() ? look_up_nodes(session, names_) : known(session);
    if (!nodes) return fail(nodes.error());
    for (const Json& node : *nodes) {
      NodeTarget target{text(node, "name"), text(node, "resource_version")};
      if (as_requested_) target.body = with_wish(node, body);
      out.push_back(std::move(target));
    }
    return out;
  }

  // Those that wait and are in the file; the others are told.
  Result<std::vector<Json>> known(Session& session) const {
    auto wanted = read_fingerprints(fingerprints_);
    if (!wanted) return fail(wanted.error());
    std::vector<Json> all, out;
    if (names_.empty()) {
      auto list = session.get_all("/v1/nodes", {}, "nodes");
      if (!list) return fail(list.error());
      all.assign(list->begin(), list->end());
    } else {
      auto list = look_up_nodes(session, names_);
      if (!list) return fail(list.error());
      all = std::move(*list);
    }
    std::set<std::string> unused = *wanted;
    for (Json& node : all) {
      const Json& spec = field(node, "spec");
      const std::string shown = ssh_fingerprint(text(field(spec, "ssh"), "host_key"));
      unused.erase(shown);
      if (text(spec, "acceptance") != "pending") {
        if (!names_.empty())
          session.note(fmt::format("{} does not wait: it is {}", text(node, "name"),
                                   text(spec, "acceptance")));
        continue;
      }
      if (wanted->count(shown)) {
        out.push_back(std::move(node));
      } else {
        session.note(fmt::format("{} waits: {} is not in {}", text(node, "name"),
                                 shown.empty() ? "its host key is not known and" : shown,
                                 fingerprints_));
      }
    }
    for (const std::string& fingerprint : unused)
      session.note(fmt::format("no node has {}", fingerprint));
    if (!out.empty()) return out;
    return fail(Code::kNotFound, "no_match",
                fmt::format("no node that waits has a host key of {}", fingerprints_),
                "clusterctl node inspect NAME shows the fingerprint of a node");
  }

  // What it asked for; what the operator says wins.
  static Json with_wish(const Json& node, Json body) {
    const Json& wish = field(field(node, "status"), "requested");
    if (!body.contains("host_group") && !text(wish, "host_group").empty())
      body["host_group"] = text(wish, "host_group");
    if (!body.contains("capabilities") && !texts(field(wish, "capabilities")).empty())
      body["capabilities"] = field(wish, "capabilities");
    const Json& labels = field(wish, "labels");
    if (labels.is_object() && !labels.empty()) {
      Json all = labels;
      if (body.contains("labels")) all.update(body["labels"]);
      body["labels"] = std::move(all);
    }
    return body;
  }

  std::vector<std::string> names_, capabilities_, labels_;
  std::string group_, reason_, fingerprints_;
  bool plan_ = false, as_requested_ = false;
};

}  // namespace

CommandPtr make_node_accept() {
  return std::make_unique<NodeAccept>();
}

}  // namespace clusterctl::cli
