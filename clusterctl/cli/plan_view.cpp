#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

// Nodes with the same services stand together: "n1, n2: base docker etcd".
std::string services_of(const Json& stage) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Json& name : field(stage, "nodes")) {
    const std::string services = join(texts(field(field(stage, "services"), text(name))), " ");
    auto it = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& g) { return g.first == services; });
    if (it == groups.end()) it = groups.insert(groups.end(), {services, {}});
    it->second.push_back(text(name));
  }
  std::string out;
  for (const auto& [services, names] : groups) {
    out += fmt::format("     {}{}{}\n", join(names, ", "), services.empty() ? "" : ": ", services);
  }
  return out;
}

// Who decides about the order, and from where on nodes are changed.
std::string order_text(const Json& plan) {
  int i = 0, batches = 0;
  bool turns = false;
  std::string drains, first;
  for (const Json& stage : field(plan, "stages")) {
    ++i;
    const std::string name = text(stage, "name");
    turns = turns || text(stage, "parallel") == "one-by-one";
    batches = std::max<int>(batches, static_cast<int>(number(field(stage, "batch"))));
    const bool looks = name == "check" || name == "observe" || name == "verify";
    if (!looks && first.empty()) first = fmt::format("stage {} ({})", i, name);
    if (name == "drain") {
      for (const Json& node : field(stage, "nodes"))
        drains += (drains.empty() ? "" : ", ") + text(node);
    }
  }
  if (first.empty()) return "nothing is changed on nodes\n";
  std::string out = "order: by clusterctl, ";
  out += batches > 0 ? fmt::format("{}, each verified before the next begins",
                                   batches == 1 ? std::string("1 batch")
                                                : fmt::format("{} batches", batches))
         : turns ? "managers one after the other, then the others in parallel"
                     : "all in parallel";
  if (!drains.empty()) out += "; drained: " + drains;
  return out +
         fmt::format("\npoint of no return: {}; nothing is changed on nodes before it\n", first);
}

}  // namespace

std::vector<std::string> plan_nodes(const Json& plan) {
  std::vector<std::string> out;
  const auto add = [&out](const std::string& name) {
    if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  // An observe stage looks at managers that the job does not touch, a forget stage works through
  // one of them.
  for (const Json& stage : field(plan, "stages")) {
    const std::string name = text(stage, "name");
    if (name == "observe" || name == "forget") continue;
    for (const Json& node : field(stage, "nodes")) add(text(node));
  }
  return out;
}

std::string plan_text(const Json& plan) {
  std::string out = fmt::format("plan: {}\n", text(plan, "title"));
  int i = 0;
  for (const Json& stage : field(plan, "stages")) {
    const size_t nodes = field(stage, "nodes").size();
    const std::string batch = text(stage, "batch");
    out += fmt::format("{:>3}. {} ({}){}{}\n", ++i, text(stage, "name"), count(nodes, "node"),
                       batch.empty() || batch == "0" ? "" : ", batch " + batch,
                       text(stage, "parallel") == "one-by-one" ? ", managers one by one" : "");
    out += services_of(stage);
  }
  out += order_text(plan);
  Table quorum({"QUORUM", "BEFORE", "AFTER", "TOLERATES"});
  const Json& services = field(plan, "quorum");
  if (services.is_object()) {
    for (const auto& [name, q] : services.items()) {
      quorum.add({name, text(q, "before"), text(q, "after"), text(q, "tolerates")});
    }
  }
  if (!quorum.empty()) out += quorum.render();
  for (const Json& w : field(plan, "warnings")) {
    const std::string node = text(w, "node");
    out += fmt::format("warning: {}{}\n", node.empty() ? "" : node + ": ", text(w, "message"));
    if (const std::string hint = text(w, "hint"); !hint.empty())
      out += fmt::format("  hint: {}\n", hint);
  }
  return out;
}

}  // namespace clusterctl::cli
