#include "fleet/snapshot.h"

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/strings.h"
#include "fleet/names.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {

const Node* Snapshot::by_name(std::string_view name) const {
  for (const auto& [id, node] : nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

Result<const Node*> Snapshot::find(std::string_view id_or_name) const {
  const std::string wanted = normal_host_name(trim(id_or_name));
  if (const auto it = nodes.find(wanted); it != nodes.end()) return &it->second;
  if (const Node* node = by_name(wanted)) return node;
  std::vector<const Node*> found;
  for (const auto& [id, node] : nodes) {
    if (is_short_for(wanted, node.name)) found.push_back(&node);
  }
  if (found.empty() && wanted.size() >= 4) {
    for (auto it = nodes.lower_bound(wanted); it != nodes.end() && it->first.rfind(wanted, 0) == 0;
         ++it) {
      found.push_back(&it->second);
    }
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    std::vector<std::string> names;
    for (const auto& [id, node] : nodes) names.push_back(node.name);
    const std::string near = nearest(std::string_view(wanted).substr(0, 64), names);
    return fail(Code::kNotFound, "no_such_node",
                fmt::format("there is no node {}", shown(id_or_name)),
                near.empty() ? "`clusterctl node ls` lists the nodes"
                             : fmt::format("did you mean \"{}\"?", near));
  }
  std::vector<std::string> candidates;
  for (const Node* node : found) candidates.push_back(fmt::format("{} ({})", node->id, node->name));
  return fail(Code::kInvalid, "ambiguous",
              fmt::format("{} fits {} nodes", shown(id_or_name), found.size()),
              "give the whole name, or more of the id: " + join(candidates, ", "));
}

}  // namespace clusterctl::fleet
