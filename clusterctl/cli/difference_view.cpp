#include "cli/difference_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/plan_view.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxValue = 60;

std::string value_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_object() && value.size() == 1 && value.contains("secret")) return "(secret)";
  const std::string shown = value.is_string() && !value.get_ref<const std::string&>().empty()
                                ? clean(value.get_ref<const std::string&>())
                                : clean(dump_json(value));
  return fit(shown, kMaxValue);
}

std::string field_text(const Json& change, bool added) {
  const std::string name = clean(text(change, "field"));
  if (field(change, "secret_value") == true) return name + ": another secret value";
  const std::string to = value_text(field(change, "to"));
  if (added) return fmt::format("{}: {}", name, to);
  return fmt::format("{}: {} → {}", name, value_text(field(change, "from")), to);
}

std::string node_text(const Json& node) {
  const std::string what = text(node, "what"), name = clean(text(node, "name"));
  if (what == "remove") return fmt::format("  - {}\n", name);
  std::string out = fmt::format("  {} {}\n", what == "add" ? "+" : "~", name);
  for (const Json& change : field(node, "fields"))
    out += "      " + field_text(change, what == "add") + "\n";
  return out;
}

}  // namespace

std::string difference_text(const Json& plan, size_t max_nodes) {
  std::string out;
  const Json& nodes = field(plan, "nodes");
  const size_t shown = max_nodes == 0 ? nodes.size() : std::min(max_nodes, nodes.size());
  if (!nodes.empty()) out += "nodes:\n";
  for (size_t i = 0; i < shown; ++i) out += node_text(nodes[i]);
  if (shown < nodes.size())
    out += fmt::format("  … and {} more (-o json has all)\n", nodes.size() - shown);
  const Json& globals = field(plan, "globals");
  if (!globals.empty()) out += "globals:\n";
  for (const Json& change : globals) out += "  ~ " + field_text(change, false) + "\n";
  const std::vector<std::string> missing = texts(field(plan, "missing"));
  if (!missing.empty()) {
    const size_t some = std::min<size_t>(missing.size(), 10);
    out += fmt::format(
        "not in it, left alone (--prune removes): {}{}\n",
        join({missing.begin(), missing.begin() + static_cast<long>(some)}, ", "),
        some < missing.size() ? fmt::format(" and {} more", missing.size() - some) : "");
  }
  int n = 0;
  for (const Json& step : field(plan, "steps")) {
    out += fmt::format("step {} {}", ++n, plan_text(step));
    if (field(step, "removes") == true) out += "  then these nodes are removed from the fleet\n";
  }
  if (field(plan, "steps").size() > 1)
    out += "each step begins when the one before it has succeeded; after a failed one none does\n";
  for (const Json& w : field(plan, "warnings")) {
    const std::string node = text(w, "node"), hint = text(w, "hint");
    out += fmt::format("note: {}{}{}\n", node.empty() ? "" : node + ": ", text(w, "message"),
                       hint.empty() ? "" : " (" + hint + ")");
  }
  return out;
}

}  // namespace clusterctl::cli
