// Commands that change the record of nodes and do nothing on the machines: label, reject,
// forget-hostkey, allocate.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/each_node.h"
#include "cli/node_commands.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/vars.h"

namespace clusterctl::cli {
namespace {

tl::unexpected<Error> usage(std::string message, std::string hint) {
  return fail(Code::kInvalid, "usage", std::move(message), std::move(hint));
}

// Each with the version it was found at: one whose labels are changed meanwhile is refused.
Result<std::vector<NodeTarget>> selected(Session& session, const std::string& selector) {
  auto nodes = session.get_all("/v1/nodes", {{"selector", selector}}, "nodes");
  if (!nodes) return fail(nodes.error());
  std::vector<NodeTarget> out;
  for (const Json& node : *nodes)
    out.push_back({text(node, "name"), text(node, "resource_version")});
  if (!out.empty()) return out;
  return fail(Code::kNotFound, "no_nodes", "no node fits the selector",
              "clusterctl node ls -l SELECTOR shows which do");
}

Json spec_of(const Json& body) {
  return body.at("spec");
}

class NodeLabel final : public Command {
 public:
  NodeLabel() : Command("label", "Set and remove labels of nodes") {
    details =
        "Labels come from operators only: nothing that a machine reports sets one.\n"
        "Examples: clusterctl node label n4 rack=r3 old-      (sets rack, removes old)\n"
        "          clusterctl node label -l rack=r3 zone=east  (all nodes of that rack)";
  }
  void options(Options& o) override {
    o.arguments("NAMES", words_, "names of nodes, then labels: k=v sets, k- removes", true);
    o.value("-l,--selector", "SELECTOR", selector_, "nodes with these labels instead of names");
    o.value("--if-match", "VERSION", version_,
            "only if the node is at this resource_version: refused when it has changed since");
    o.flag("--plan", plan_, "only show what would change");
  }

  Result<int> run(Session& session) override {
    const auto is_label = [](const std::string& word) {
      return word.find('=') != std::string::npos || word.ends_with('-');
    };
    const auto first = std::find_if(words_.begin(), words_.end(), is_label);
    const std::vector<std::string> names(words_.begin(), first);
    auto labels = parse_labels({first, words_.end()}, true);
    if (!labels) return fail(labels.error());
    if (names.empty() == selector_.empty())
      return usage(names.empty() ? "name the nodes, or select them"
                                 : "names and --selector exclude each other",
                   "clusterctl node label NAME k=v, or -l SELECTOR k=v");
    if (labels->empty()) return usage("give labels: nothing was changed", "k=v sets, k- removes");
    if (!version_.empty() && names.size() != 1)
      return usage("--if-match is the version of one node", "name one node");
    auto targets =
        selector_.empty() ? named_nodes(session, names, version_) : selected(session, selector_);
    if (!targets) return fail(targets.error());
    EachNode each(session, "PATCH", "", {{"spec", {{"labels", *labels}}}}, spec_of);
    return plan_ ? each.plan(*targets) : each.run(*targets, "labelled");
  }

 private:
  std::vector<std::string> words_;
  std::string selector_, version_;
  bool plan_ = false;
};

// `reject` and `forget-hostkey`: a word and a reason. `spec`: what it changes.
class NodeWord final : public Command {
 public:
  NodeWord(const std::string& name, std::string done, Json spec, const std::string& summary)
      : Command(name, summary), done_(std::move(done)), spec_(std::move(spec)) {}
  void options(Options& o) override {
    o.arguments("NAMES", names_, "names or ids of the nodes", true);
    o.value("--reason", "TEXT", reason_, "why; kept in the history of the node");
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    const auto targets = named_nodes(session, names_);
    if (!targets) return fail(targets.error());
    Json body = Json::object();
    if (!reason_.empty()) body["reason"] = reason_;
    EachNode each(session, "POST", "/" + name, std::move(body),
                  [this](const Json&) { return spec_; });
    return plan_ ? each.plan(*targets) : each.run(*targets, done_);
  }

 private:
  std::string done_;
  Json spec_;
  std::vector<std::string> names_;
  std::string reason_;
  bool plan_ = false;
};

class NodeAllocate final : public Command {
 public:
  NodeAllocate() : Command("allocate", "Say which nodes are wanted in service, spare or retired") {
    details =
        "Spare and retired nodes are left out by commands that name no nodes, and commission "
        "refuses them.\n"
        "A commissioned node is decommissioned first.";
  }
  void options(Options& o) override {
    o.arguments("NAMES", names_, "names or ids of the nodes", true);
    OptionSpec& as = o.value("--as", "WORD", word_, "in-service, spare or retired");
    as.choices = {"in-service", "spare", "retired"};
    as.required = true;
    o.flag("--plan", plan_, "only show what would change");
  }
  Result<int> run(Session& session) override {
    const auto targets = named_nodes(session, names_);
    if (!targets) return fail(targets.error());
    EachNode each(session, "PATCH", "", {{"spec", {{"allocation", word_}}}}, spec_of);
    return plan_ ? each.plan(*targets) : each.run(*targets, "is " + word_);
  }

 private:
  std::vector<std::string> names_;
  std::string word_;
  bool plan_ = false;
};

}  // namespace

CommandPtr make_node_label() {
  return std::make_unique<NodeLabel>();
}
CommandPtr make_node_reject() {
  return std::make_unique<NodeWord>("reject", "rejected", Json{{"acceptance", "rejected"}},
                                    "Refuse nodes: they cannot be commissioned");
}
CommandPtr make_node_forget_hostkey() {
  auto command = std::make_unique<NodeWord>(
      "forget-hostkey", "has no pinned host key now", Json{{"ssh", {{"host_key", ""}}}},
      "Forget the pinned SSH host key of nodes, after their OS was installed anew");
  command->details = "The next check or job pins the key that the machine shows then.";
  return command;
}
CommandPtr make_node_allocate() {
  return std::make_unique<NodeAllocate>();
}

}  // namespace clusterctl::cli
