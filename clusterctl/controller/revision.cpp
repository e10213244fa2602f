#include "controller/revision.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"
#include "controller/change.h"
#include "fleet/node_json.h"

namespace clusterctl::controller {
namespace {

bool same_wish(const fleet::NodeSpec& before, const fleet::NodeSpec& after) {
  if (!before.ssh.host_key.empty() || after.ssh.host_key.empty()) return before == after;
  fleet::NodeSpec learnt = before;
  learnt.ssh.host_key = after.ssh.host_key;
  return learnt == after;
}

std::vector<std::string> differing(const Json& before, const Json& after) {
  std::vector<std::string> out;
  for (const auto& [name, value] : after.items()) {
    const auto it = before.find(name);
    if (it == before.end() || *it != value) out.push_back(name);
  }
  for (const auto& [name, value] : before.items()) {
    if (!after.contains(name)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string revision_key(uint64_t number) {
  return fmt::format("{}{:020}", kRevisionPrefix, number);
}

std::optional<Undone> revision_of(const fleet::Snapshot& now, const Change& change) {
  Undone out;
  Revision& r = out.revision;
  for (const auto& [id, node] : change.nodes) {
    const auto it = now.nodes.find(id);
    if (it == now.nodes.end()) {
      r.added.push_back(node.name);
      out.nodes[id] = {node.name, Json()};
    } else if (!(change.by.empty() ? same_wish(it->second.spec, node.spec)
                                   : it->second.spec == node.spec)) {
      r.changed.push_back(node.name);
      out.nodes[id] = {it->second.name, fleet::to_json(it->second.spec)};
    }
  }
  for (const std::string& id : change.removed_nodes) {
    const auto it = now.nodes.find(id);
    if (it == now.nodes.end()) continue;
    r.removed.push_back(it->second.name);
    out.nodes[id] = {it->second.name, fleet::to_json(it->second.spec)};
  }
  if (change.globals && *change.globals != now.globals) {
    r.globals = differing(now.globals, *change.globals);
    out.globals = now.globals;
  }
  if (out.nodes.empty() && !out.globals) return std::nullopt;
  for (auto* names : {&r.added, &r.changed, &r.removed}) std::sort(names->begin(), names->end());
  r.by = change.by;
  r.what = change.what;
  return out;
}

Json to_json(const Revision& r) {
  return {{"revision", r.number},
          {"time", format_time(r.time)},
          {"by", r.by},
          {"what", r.what},
          {"nodes", {{"added", r.added}, {"changed", r.changed}, {"removed", r.removed}}},
          {"globals", r.globals}};
}

Result<Revision> revision_from_json(const Json& j) {
  try {
    Revision r;
    r.number = j.at("revision");
    r.time = parse_time(j.at("time").get<std::string>()).value_or(Time{});
    r.by = j.at("by");
    r.what = j.at("what");
    r.added = j.at("nodes").at("added").get<std::vector<std::string>>();
    r.changed = j.at("nodes").at("changed").get<std::vector<std::string>>();
    r.removed = j.at("nodes").at("removed").get<std::vector<std::string>>();
    r.globals = j.at("globals").get<std::vector<std::string>>();
    return r;
  } catch (const std::exception& e) {
    return fail(Code::kInternal, "damaged",
                std::string("the record of a revision cannot be read: ") + e.what(),
                "restore the state directory from a backup");
  }
}

}  // namespace clusterctl::controller
