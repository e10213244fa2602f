#include "controller/wanted_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "ansible/render.h"
#include "base/host_name.h"
#include "base/strings.h"
#include "fleet/names.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kMaxNodes = 10000;

std::string first_label(const std::string& name) {
  return name.substr(0, name.find('.'));
}

// A secret value that is the one already kept is the reference to it.
Json keep_known(const Json& wanted, const Json& current, const std::map<std::string, Json>& known) {
  if (const auto name = secret_reference(current); name && !secret_reference(wanted)) {
    const auto it = known.find(*name);
    return it != known.end() && it->second == wanted ? current : wanted;
  }
  if (wanted.is_object() && current.is_object()) {
    Json out = wanted;
    for (auto it = out.begin(); it != out.end(); ++it) {
      const auto now = current.find(it.key());
      if (now != current.end()) *it = keep_known(*it, *now, known);
    }
    return out;
  }
  if (wanted.is_array() && current.is_array()) {
    Json out = wanted;
    for (size_t i = 0; i < std::min(out.size(), current.size()); ++i)
      out[i] = keep_known(out[i], current[i], known);
    return out;
  }
  return wanted;
}

Json resolved(const Json& value, const std::map<std::string, Json>& values) {
  if (const auto name = secret_reference(value)) {
    const auto it = values.find(*name);
    return it == values.end() ? value : it->second;
  }
  Json out = value;
  if (out.is_structured()) {
    for (auto it = out.begin(); it != out.end(); ++it) *it = resolved(*it, values);
  }
  return out;
}

}  // namespace

Result<Json> resolve_known(const Json& vars, const std::map<std::string, Json>& values) {
  return resolved(vars, values);
}

Result<PlanRequest> read_plan_request(const Json& body) {
  if (auto ok = check_keys(
          body,
          {"document", "changes", "to_revision", "job", "prune", "work", "options", "dry_run"},
          "a plan request");
      !ok)
    return fail(ok.error());
  PlanRequest out;
  int given = 0;
  for (auto [key, target] : {std::pair{"document", &out.document},
                             std::pair{"changes", &out.changes}, std::pair{"job", &out.job}}) {
    if (!body.contains(key)) continue;
    auto object = get_object(body, key);
    if (!object) return fail(object.error());
    *target = std::move(*object);
    ++given;
  }
  if (body.contains("to_revision")) {
    const auto number = get_int(body, "to_revision", -1);
    if (!number) return fail(number.error());
    if (*number < 0)
      return fail(Code::kInvalid, "bad_revision", "\"to_revision\" must be a number from 0");
    out.revision = static_cast<uint64_t>(*number);
    ++given;
  }
  if (given != 1) {
    return fail(Code::kInvalid, "one_source",
                "a plan request needs one of \"document\", \"changes\", \"to_revision\", \"job\"",
                "give exactly one of them");
  }
  const auto prune = get_bool(body, "prune"), work = get_bool(body, "work", true),
             dry_run = get_bool(body, "dry_run");
  for (const auto* flag : {&prune, &work, &dry_run}) {
    if (!*flag) return fail(flag->error());
  }
  auto options = get_object(body, "options");
  if (!options) return fail(options.error());
  if (auto ok = check_keys(*options, plan::kStepOptions, "options"); !ok) return fail(ok.error());
  out.prune = *prune;
  out.work = *work;
  out.dry_run = *dry_run;
  out.options = std::move(*options);
  return out;
}

WantedReader::WantedReader(const State& now, const SecretNames& names, const VariableTypes& types,
                           Ids& ids)
    : now_(now), names_(names), types_(types), ids_(ids) {
  for (const auto& [id, node] : now.fleet->nodes) {
    by_name_[node.name] = &node;
    by_label_.emplace(first_label(node.name), node.name);
  }
}

Result<std::string> WantedReader::spelled(const std::string& given) const {
  const std::string name = normal_host_name(given);
  if (by_name_.count(name)) return name;
  std::vector<std::string> same;
  const auto [first, last] = by_label_.equal_range(first_label(name));
  for (auto it = first; it != last; ++it) {
    if (fleet::same_name(it->second, name)) same.push_back(it->second);
  }
  if (same.empty()) return name;
  if (same.size() == 1) return same[0];
  return fail(Code::kInvalid, "ambiguous",
              fmt::format("{} fits {} nodes", truncate_utf8(one_line(given), 80), same.size()),
              "give the whole name: " + join(same, ", "));
}

std::string WantedReader::id_of(const std::string& name) {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second->id;
  const auto [fresh, added] = new_ids_.try_emplace(name);
  if (added) fresh->second = ids_.node_id();
  return fresh->second;
}

void WantedReader::give_ids(const plan::Wanted& wanted) {
  for (const plan::WantedNode& n : wanted.nodes) id_of(n.name);
}

Result<plan::Wanted> WantedReader::read(const PlanRequest& request) {
  plan::Wanted out;
  const bool changes = request.document.is_null();
  const Json& source = changes ? request.changes : request.document;
  out.reading = changes ? plan::Reading::kChanges : plan::Reading::kDocument;
  const std::vector<std::string> keys = changes
                                            ? std::vector<std::string>{"nodes", "globals", "remove"}
                                            : std::vector<std::string>{"nodes", "globals"};
  if (auto ok = check_keys(source, keys, changes ? "\"changes\"" : "\"document\""); !ok)
    return fail(ok.error());
  const Json nodes = source.value("nodes", Json::array());
  if (!nodes.is_array())
    return fail(Code::kInvalid, "wrong_type", "\"nodes\" must be a list of nodes");
  if (nodes.size() > kMaxNodes) {
    return fail(Code::kInvalid, "too_many_nodes", "too many nodes in one request",
                fmt::format("at most {}", kMaxNodes));
  }
  for (const Json& item : nodes) {
    if (auto ok = read_node(item, changes, out); !ok) return fail(ok.error());
  }
  auto remove = get_strings(source, "remove");
  if (!remove) return fail(remove.error());
  for (const std::string& ref : *remove) {
    const auto node = now_.fleet->find(ref);
    if (!node) return fail(node.error());
    out.remove.push_back((*node)->name);
  }
  if (auto ok = read_globals(source, changes, out); !ok) return fail(ok.error());
  return out;
}

Status WantedReader::read_node(const Json& item, bool changes, plan::Wanted& out) {
  if (!item.is_object())
    return fail(Code::kInvalid, "wrong_type", "\"nodes\" must hold objects {\"name\", \"spec\"}");
  if (auto ok = check_keys(item, {"name", "spec"}, "a node"); !ok) return ok;
  const auto name = get_string(item, "name");
  if (!name) return fail(name.error());
  auto spec = get_object(item, "spec");
  if (!spec) return fail(spec.error());
  plan::WantedNode node{*name, std::move(*spec), {}};
  if (const auto found = now_.fleet->find(*name); changes && found) {
    node.name = (*found)->name;  // small commands name nodes as people do
  } else {
    auto stored = spelled(*name);
    if (!stored) return fail(stored.error());
    node.name = std::move(*stored);
  }
  const auto it = by_name_.find(node.name);
  const Json none = Json::object();
  const Json& current = it == by_name_.end() ? none : it->second->spec.vars;
  const std::string id = id_of(node.name);
  if (node.spec.contains("vars") && node.spec["vars"].is_object()) {
    const std::string what = node.name + ": vars";
    if (auto ok = ansible::check_var_names(node.spec["vars"], what); !ok) return ok;
    if (auto ok = check_types(node.spec["vars"], types_, what); !ok) return ok;
    auto vars = hide(node.spec["vars"], current, "node." + id, node.secrets);
    if (!vars) {
      Error error = vars.error();
      error.message = node.name + ": " + error.message;
      return fail(std::move(error));
    }
    node.spec["vars"] = std::move(*vars);
  }
  out.nodes.push_back(std::move(node));
  return {};
}

Status WantedReader::read_globals(const Json& source, bool changes, plan::Wanted& out) {
  if (!source.contains("globals")) return {};
  auto globals = get_object(source, "globals");
  if (!globals) return fail(globals.error());
  if (auto ok = ansible::check_var_names(*globals, "globals"); !ok) return ok;
  if (auto ok = check_types(*globals, types_, "globals"); !ok) return ok;
  auto hidden = hide(*globals, now_.fleet->globals, "globals", out.secrets);
  if (!hidden) return fail(hidden.error());
  if (!changes) {
    out.globals = std::move(*hidden);
    return {};
  }
  Json merged = now_.fleet->globals;
  for (const auto& [name, value] : hidden->items()) {
    if (value.is_null()) {
      merged.erase(name);
    } else {
      merged[name] = value;
    }
  }
  out.globals = std::move(merged);
  return {};
}

// `renewed`: variables in which a reference stays and the value behind it is another one.
Result<Json> WantedReader::hide(const Json& vars, const Json& current, const std::string& scope,
                                std::set<std::string>& renewed) {
  std::map<std::string, Json> values;
  auto hidden =
      hide_secrets(keep_known(vars, current, now_.secrets), names_, scope, now_.secrets, values);
  if (!hidden) return hidden;
  for (const auto& [name, value] : hidden->items()) {
    const auto before = current.find(name);
    if (before == current.end() || *before != value) continue;
    const auto names = secret_references(value);
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& n) { return values.count(n) != 0; }))
      renewed.insert(name);
  }
  for (auto& [name, value] : values) values_[name] = std::move(value);
  return hidden;
}

}  // namespace clusterctl::controller
