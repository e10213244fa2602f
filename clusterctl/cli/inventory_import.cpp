#include "cli/inventory_import.h"

#include <fmt/format.h>

#include <map>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr int kMergeLevels =
    2;  // spec.vars.NAME: members of these objects that the file does not name stay

Json patch_at(const Json& from, const Json& to, int level) {
  if (!to.is_object() || !from.is_object()) return from == to ? Json() : to;
  Json patch = Json::object();
  for (const auto& [key, value] : to.items()) {
    const auto it = from.find(key);
    if (it == from.end()) {
      if (!value.is_null()) patch[key] = value;
      continue;
    }
    if (value.is_null()) {
      if (!it->is_null()) patch[key] = nullptr;
      continue;
    }
    Json inner = patch_at(*it, value, level + 1);
    if (!inner.is_null()) patch[key] = std::move(inner);
  }
  if (level >= kMergeLevels) {
    for (const auto& [key, value] : from.items()) {
      if (!to.contains(key)) patch[key] = nullptr;
    }
  }
  return patch.empty() ? Json() : patch;
}

bool commissioned(const Json& node) {
  const std::string lifecycle = text(field(node, "status"), "lifecycle");
  return lifecycle != "Unallocated" && lifecycle != "Decommissioned";
}

// Fields that only a job may change on a commissioned node.
void check_commissioned(const Json& node, const Json& patch, std::vector<Problem>& problems) {
  if (!commissioned(node)) return;
  for (const char* key : {"host_group", "capabilities", "availability", "versions"}) {
    if (!patch.contains(key)) continue;
    problems.push_back(
        {"needs_job",
         fmt::format("is commissioned; {} cannot be changed from {} to {} by an import", key,
                     dump_json(field(field(node, "spec"), key)), dump_json(patch[key])),
         "decommission and commission it, or leave it as it is in the file", text(node, "name")});
  }
}

void check_addresses(const std::vector<inventory::NodeDraft>& drafts,
                     const std::map<std::string, Json>& known, std::vector<Problem>& problems) {
  const auto address = [](const Json& spec) {
    const Json& port = field(field(spec, "ssh"), "port");
    return text(spec, "addr") + " " + std::to_string(port.is_null() ? 22 : number(port));
  };
  std::map<std::string, std::string> taken;
  std::map<std::string, bool> drafted;
  for (const auto& d : drafts) drafted[d.name] = true;
  for (const auto& [name, node] : known) {
    if (!drafted.contains(name)) taken[address(field(node, "spec"))] = name;
  }
  for (const auto& d : drafts) {
    const auto it = taken.find(address(d.spec));
    if (it == taken.end()) continue;
    problems.push_back({"duplicate_addr",
                        fmt::format("has the address {} of {}", text(d.spec, "addr"), it->second),
                        "", d.name});
  }
}

}  // namespace

Json patch_for(const Json& from, const Json& to) {
  return patch_at(from, to, 0);
}

Result<std::vector<Change>> compare(const std::vector<inventory::NodeDraft>& drafts,
                                    const Json& nodes) {
  std::map<std::string, Json> known;
  for (const Json& node : nodes) known[text(node, "name")] = node;
  std::vector<Change> changes;
  std::vector<Problem> problems;
  for (const auto& draft : drafts) {
    const auto it = known.find(draft.name);
    if (it == known.end()) {
      changes.push_back({draft.name, Change::Kind::kCreate, draft.spec});
      continue;
    }
    Json patch = patch_for(field(it->second, "spec"), draft.spec);
    check_commissioned(it->second, patch, problems);
    const auto kind = patch.is_null() ? Change::Kind::kUnchanged : Change::Kind::kUpdate;
    changes.push_back({draft.name, kind, std::move(patch)});
  }
  check_addresses(drafts, known, problems);
  if (problems.empty()) return changes;
  return fail(Error{Code::kRefused, "bad_inventory",
                    "the inventory cannot be imported; nothing was changed", "",
                    std::move(problems)});
}

Status apply(Session& session, const std::vector<Change>& changes, const Json& globals_patch) {
  std::vector<std::string> created, updated;
  const auto undo = [&](Error error, const std::string& name) -> Status {
    for (const std::string& done : created) {
      if (!session.call("DELETE", "/v1/nodes/" + client::escape(done), nullptr)) {
        session.note(fmt::format("warning: {} was created and could not be removed again", done));
      }
    }
    error.message =
        (name.empty() ? "" : name + ": ") + error.message +
        (updated.empty() ? "; nothing was imported" : "; only updated: " + join(updated, ", "));
    return fail(std::move(error));
  };
  for (const Change& c : changes) {
    if (c.kind != Change::Kind::kCreate) continue;
    auto node = session.call("POST", "/v1/nodes", {{"name", c.name}, {"spec", c.body}});
    if (!node) return undo(node.error(), c.name);
    created.push_back(c.name);
  }
  for (const Change& c : changes) {
    if (c.kind != Change::Kind::kUpdate) continue;
    auto node = session.call("PATCH", "/v1/nodes/" + client::escape(c.name), {{"spec", c.body}});
    if (!node) return undo(node.error(), c.name);
    updated.push_back(c.name);
  }
  if (globals_patch.is_null()) return {};
  auto globals = session.call("PATCH", "/v1/globals", {{"vars", globals_patch}});
  if (!globals) return undo(globals.error(), "globals");
  session.warnings(*globals);
  return {};
}

}  // namespace clusterctl::cli
