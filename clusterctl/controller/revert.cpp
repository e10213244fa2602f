// What was wanted at an earlier revision, from what stood there before each change since.
#include <fmt/format.h>

#include "controller/controller.h"
#include "controller/secrets.h"
#include "fleet/node_json.h"
#include "fleet/problems.h"
#include "fleet/words.h"

namespace clusterctl::controller {

// What was wanted right after revision `number`: the first record of each node after it says so.
Result<plan::Wanted> Controller::wanted_at(const State& now, uint64_t number) {
  const auto& kept = now.revisions;
  const uint64_t newest = kept.empty() ? 0 : kept.rbegin()->first;
  const uint64_t oldest = kept.empty() ? 0 : kept.begin()->first - 1;
  if (number > newest || number < oldest) {
    return fail(Code::kNotFound, "no_such_revision", fmt::format("there is no revision {}", number),
                kept.empty()
                    ? "nothing was changed yet"
                    : fmt::format("{} to {} are kept: clusterctl revision ls", oldest, newest));
  }
  std::map<std::string, Before> then;
  std::optional<Json> globals;
  for (auto it = kept.upper_bound(number); it != kept.end(); ++it) {
    const std::string below = revision_key(it->first) + "/";
    MutexLock lock(mutex_);
    auto records = writer_.load(below);
    if (!records) return fail(records.error());
    for (const store::Record& record : *records) {
      auto value = parse_json(record.value, "record " + record.key, 64);
      if (!value) return fail(value.error());
      const std::string id = record.key.substr(below.size());
      if (id == "globals") {
        if (!globals) globals = value->at("vars");
      } else {
        then.try_emplace(id, Before{value->at("name"), value->at("spec")});
      }
    }
  }
  return wanted_of(now, then, globals);
}

Result<plan::Wanted> Controller::wanted_of(const State& now,
                                           const std::map<std::string, Before>& then,
                                           const std::optional<Json>& globals) const {
  plan::Wanted out;
  out.reading = plan::Reading::kWhole;
  fleet::Problems problems;
  const auto check = [&](const Json& vars, const std::string& node) {
    for (const std::string& name : secret_references(vars)) {
      if (now.secrets.count(name)) continue;
      problems.add(Code::kConflict,
                   Problem{"secrets_gone", fmt::format("the value of its secret {} is gone", name),
                           "set it anew, then apply the file instead", node});
    }
  };
  for (const auto& [id, before] : then) {
    const auto it = now.fleet->nodes.find(id);
    const bool there = it != now.fleet->nodes.end();
    if (before.spec.is_null()) {
      if (there) out.remove.push_back(it->second.name);
      continue;
    }
    const Json vars = before.spec.value("vars", Json::object());
    check(vars, before.name);
    out.nodes.push_back({there ? it->second.name : before.name, before.spec, {}});
  }
  if (globals && *globals != now.fleet->globals) {
    check(*globals, "");
    out.globals = globals;
    for (const auto& [id, node] : now.fleet->nodes) {  // they concern every node in service
      if (then.count(id) == 0 && is_commissioned(node))
        out.nodes.push_back({node.name, fleet::to_json(node.spec), {}});
    }
  }
  if (!problems.empty()) return problems.refuse("nothing is changed");
  return out;
}

}  // namespace clusterctl::controller
