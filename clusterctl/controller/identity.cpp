// What the operator says about a node's machine and its name.
#include <fmt/format.h>

#include "base/host_name.h"
#include "controller/controller.h"
#include "controller/node_change.h"
#include "fleet/recognize.h"

namespace clusterctl::controller {

Result<fleet::Node> Controller::confirm_hardware(std::string_view ref, const IfMatch& if_match,
                                                 bool dry_run) {
  MutexLock lock(mutex_);
  const auto now = state();
  const auto found = now->fleet->find(ref);
  if (!found) return fail(found.error());
  if (auto ok = check_version("node " + (*found)->name, (*found)->resource_version, if_match); !ok)
    return fail(ok.error());
  fleet::Snapshot fleet = *now->fleet;
  std::set<std::string> changed;
  const std::string id = (*found)->id;
  if (auto ok = fleet::confirm_hardware(fleet, id, deps_.clock.now(), changed); !ok)
    return fail(ok.error());
  Change change;
  take_changed(fleet, std::move(changed), change);
  fleet::Node node = fleet.nodes.at(id);
  if (dry_run) return node;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return node;
}

Result<fleet::Node> Controller::rename_node(std::string_view ref, const Json& body,
                                            const IfMatch& if_match, bool dry_run) {
  if (auto ok = check_keys(body, {"name"}, "the request"); !ok) return fail(ok.error());
  const auto given = get_string(body, "name");
  if (!given) return fail(given.error());
  const std::string name = normal_host_name(*given);
  if (deps_.catalog.host_group(name)) {
    return fail(Code::kInvalid, "reserved_name",
                fmt::format("\"{}\" is the name of a host group", name), "choose another name");
  }
  MutexLock lock(mutex_);
  const auto now = state();
  const auto found = now->fleet->find(ref);
  if (!found) return fail(found.error());
  const std::string id = (*found)->id, was = (*found)->name;
  if (auto ok = check_version("node " + (*found)->name, (*found)->resource_version, if_match); !ok)
    return fail(ok.error());
  if (auto ok = check_not_worked_on(**found, true); !ok) return fail(ok.error());
  fleet::Snapshot fleet = *now->fleet;
  std::set<std::string> changed;
  if (auto ok = fleet::rename_node(fleet, id, name, changed); !ok) return fail(ok.error());
  fleet::Node node = fleet.nodes.at(id);
  if (changed.empty() || dry_run) return node;
  Change change;
  change.nodes[id] = node;
  change.events.push_back({0, {}, "node.renamed", name, "", fmt::format("it was {}", was)});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return node;
}

}  // namespace clusterctl::controller
