#include "plan/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/conditions.h"
#include "fleet/patterns.h"
#include "fleet/selector.h"
#include "fleet/words.h"

namespace clusterctl::plan {

using fleet::Lifecycle;

Context::Context(const fleet::Snapshot& snapshot, const catalog::Catalog& catalog,
                 const Request& request)
    : snapshot_(snapshot),
      catalog_(catalog),
      request_(request),
      views_(observe_members(snapshot, catalog)) {}

NodeList Context::managers(const std::set<std::string>& except) const {
  NodeList out;
  for (const auto& [id, node] : snapshot_.nodes) {
    const bool serving = node.status.lifecycle == Lifecycle::kAllocated ||
                         node.status.lifecycle == Lifecycle::kMaintenance;
    if (!serving || !node.status.applied || except.count(id)) continue;
    if (role_of(catalog_, node) == fleet::Role::kManager) out.push_back(&node);
  }
  sort_by_name(out);
  return out;
}

NodeList Context::commissioned(const std::set<std::string>& except) const {
  NodeList out;
  for (const auto& [id, node] : snapshot_.nodes) {
    if (is_commissioned(node) && !except.count(id)) out.push_back(&node);
  }
  sort_by_name(out);
  return out;
}

bool Context::cluster_exists() const {
  return !managers().empty() || std::any_of(views_.begin(), views_.end(), [](const fleet::View& v) {
    return v.count().total > 0;
  });
}

const Node* Context::peer(const std::set<std::string>& except) const {
  const Node* best = nullptr;
  int best_score = -1;
  for (const Node* node : managers(except)) {
    if (node->status.presence == fleet::Presence::kDisappeared) continue;
    if (has_condition(node->status, fleet::condition::kIdentityConflict)) continue;
    int score = 0;
    bool answers = true;
    for (const fleet::View& view : views_) {
      const fleet::SeenMember* member = view.of(node->id);
      score += member ? 2 : 0;
      answers = answers && (!member || member->reachable);
    }
    score += node->status.lifecycle == Lifecycle::kAllocated ? 1 : 0;
    if (answers && score > best_score) {
      best = node;
      best_score = score;
    }
  }
  return best;
}

bool Context::is_member(const Node& node) const {
  return std::any_of(views_.begin(), views_.end(),
                     [&](const fleet::View& v) { return v.of(node.id); });
}

bool Context::is_scheduled(const Node& node) const {
  const auto services = services_of(node);
  return std::any_of(services.begin(), services.end(), [&](const std::string& name) {
    const catalog::Service* service = catalog_.service(name);
    return service && service->schedules;
  });
}

bool Context::others_take_work(const std::set<std::string>& except) const {
  const NodeList others = commissioned(except);
  return std::any_of(others.begin(), others.end(), [&](const Node* node) {
    return node->status.applied && node->status.presence != fleet::Presence::kDisappeared &&
           last_availability(*node) == fleet::Availability::kActive && is_scheduled(*node);
  });
}

std::vector<std::string> Context::services_of(const Node& node) const {
  if (node.status.applied) return node.status.applied->services;
  const std::string& group = node.spec.host_group;
  return catalog_.services_for(group, catalog_.capabilities_for(group, node.spec.capabilities),
                               effective_vars(snapshot_, catalog_, node, group, request_.vars));
}

std::vector<std::string> Context::services_of_any_group(const Node& node) const {
  std::set<std::string> some;
  const auto note = [&](const std::vector<std::string>& services) {
    some.insert(services.begin(), services.end());
  };
  note(services_of(node));
  for (const std::string& group : catalog_.host_group_names()) {
    const Json vars = effective_vars(snapshot_, catalog_, node, group, request_.vars);
    note(catalog_.services_for(group, catalog_.capabilities_for(group, {}), vars));
    note(catalog_.services_for(group, catalog_.capabilities_for(group, node.spec.capabilities),
                               vars));
  }
  std::vector<std::string> out;
  for (const catalog::Service& s : catalog_.services()) {
    if (some.count(s.name)) out.push_back(s.name);
  }
  return out;
}

std::vector<std::string> Context::strays(const Node& node,
                                         const std::vector<std::string>& wanted) const {
  if (!has_condition(node.status, fleet::condition::kDirty)) return {};
  std::vector<std::string> out = services_of_any_group(node);
  std::erase_if(out, [&](const std::string& name) {
    return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  });
  return out;
}

NodeList Context::named(fleet::Problems& problems, std::vector<Problem>&) const {
  NodeList out;
  std::set<std::string> seen;
  for (const std::string& name : request_.nodes) {
    const auto found = snapshot_.find(name);
    if (!found) {
      problems.add(found.error());
    } else if (!seen.insert((*found)->id).second) {
      problems.add(Code::kInvalid, Problem{"named_twice",
                                           fmt::format("{} names {}, which was named before",
                                                       fleet::shown(name), (*found)->name),
                                           "name every node once", (*found)->name});
    } else {
      out.push_back(*found);
    }
  }
  return out;
}

NodeList Context::selected(fleet::Problems& problems) const {
  NodeList out;
  const auto selector = fleet::Selector::parse(request_.selector);
  if (!selector) {
    problems.add(selector.error());
    return out;
  }
  for (const auto& [id, node] : snapshot_.nodes) {
    if (selector->matches(node.spec.labels)) out.push_back(&node);
  }
  sort_by_name(out);
  return out;
}

Stage Context::stage(std::string name, const NodeList& nodes, RunVars vars,
                     const std::set<std::string>& absent) const {
  Stage out;
  out.playbook = name + ".yml";
  out.name = std::move(name);
  out.vars = std::move(vars);
  for (const Node* node : nodes) {
    out.nodes.push_back(node->id);
    out.services[node->id] = services_of(*node);
  }
  std::set<std::string> not_peers = ids_of(nodes);
  not_peers.insert(absent.begin(), absent.end());
  for (const Node* node : managers(not_peers)) {
    out.peers.push_back(node->id);
    out.services[node->id] = services_of(*node);
  }
  return out;
}

std::string Context::endpoint(const NodeList& managers, const Json& vars) const {
  const auto vip = vars.find("service_vip");
  if (vip != vars.end() && vip->is_string() && !vip->get_ref<const std::string&>().empty())
    return vip->get<std::string>();
  return managers.empty() ? "" : managers.front()->spec.addr;
}

RunVars Context::run_vars(const NodeList& managers, const Node* peer, const Json& vars) const {
  RunVars out;
  out.managers = names_of(managers);
  out.peer = peer ? peer->name : "";
  out.endpoint = endpoint(managers, vars);
  return out;
}

std::set<std::string> ids_of(const NodeList& nodes) {
  std::set<std::string> out;
  for (const Node* node : nodes) out.insert(node->id);
  return out;
}

std::vector<std::string> names_of(const NodeList& nodes) {
  std::vector<std::string> out;
  for (const Node* node : nodes) out.push_back(node->name);
  return out;
}

void sort_by_name(NodeList& nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->name < b->name; });
}

std::string some_names(const NodeList& nodes) {
  constexpr size_t kShown = 5;
  std::vector<std::string> names = names_of(nodes);
  if (names.size() <= kShown) return join(names, ", ");
  const size_t more = names.size() - kShown;
  names.resize(kShown);
  return fmt::format("{} and {} more", join(names, ", "), more);
}

}  // namespace clusterctl::plan
