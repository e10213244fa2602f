// What clients may send about a node: POST and PATCH bodies.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/host_name.h"
#include "base/strings.h"
#include "fleet/node_json.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"

namespace clusterctl::fleet {
namespace {

const std::vector<std::string> kSpecKeys{"addr",       "ssh",          "acceptance",   "allocation",
                                         "host_group", "capabilities", "availability", "labels",
                                         "vars",       "versions"};
const std::vector<std::string> kSshKeys{"user", "port", "host_key", "jump", "extra_args"};

// Every unknown key is a problem of its own.
void known_keys(Problems& problems, const Json& object, const std::vector<std::string>& known,
                std::string_view what) {
  for (const auto& [key, value] : object.items()) {
    problems.take(check_keys(Json{{key, value}}, known, what));
  }
}

template <typename E>
void read_word(Problems& problems, const Json& object, std::string_view key, E& out) {
  const auto text = get_string(object, key);
  if (!text) return problems.add(text.error());
  if (text->empty() && (!object.contains(key) || object[std::string(key)].is_null())) return;
  if (const auto e = from_word<E>(*text)) {
    out = *e;
    return;
  }
  problems.add(Code::kInvalid,
               Problem{"unknown_word", fmt::format("{} is not a value of {}", shown(*text), key),
                       "one of: " + join(all_words<E>(), ", "), ""});
}

void read_ssh(Problems& problems, const Json& spec, Ssh& ssh) {
  const Json o = problems.take(get_object(spec, "ssh"));
  if (!o.is_object()) return;
  known_keys(problems, o, kSshKeys, "ssh");
  ssh.user = problems.take(get_string(o, "user"));
  problems.take(check_ssh_user(ssh.user));
  const auto port = get_int(o, "port", 22);
  if (!port)
    problems.add(port.error());
  else if (auto fine = check_ssh_port(*port); !fine)
    problems.add(fine.error());
  else
    ssh.port = static_cast<int>(*port);
  ssh.host_key = problems.take(check_host_key(problems.take(get_string(o, "host_key"))));
  ssh.jump = problems.take(get_string(o, "jump"));
  problems.take(check_ssh_jump(ssh.jump));
  ssh.extra_args = problems.take(get_strings(o, "extra_args"));
  problems.take(check_ssh_extra_args(ssh.extra_args));
}

void read_labels(Problems& problems, const Json& spec, NodeSpec& out) {
  const Json labels = problems.take(get_object(spec, "labels"));
  if (!labels.is_object()) return;
  for (const auto& [key, value] : labels.items()) {
    if (!value.is_string()) {
      problems.add(Code::kInvalid, Problem{"wrong_type",
                                           fmt::format("label {} must be a string, not {}",
                                                       shown(key), value.type_name()),
                                           "quote it", ""});
    } else if (auto fine = check_label(key, value.get_ref<const std::string&>()); !fine) {
      problems.add(fine.error());
    } else {
      out.labels[key] = value.get<std::string>();
    }
  }
  if (labels.size() > kMaxListItems) {
    problems.add(Code::kInvalid, Problem{"too_many_labels", "too many labels",
                                         fmt::format("at most {}", kMaxListItems), ""});
  }
}

void read_versions(Problems& problems, const Json& spec, NodeSpec& out) {
  const Json versions = problems.take(get_object(spec, "versions"));
  if (!versions.is_object()) return;
  if (versions.size() > kMaxListItems) {
    problems.add(Code::kInvalid, Problem{"too_many_versions", "too many versions",
                                         fmt::format("at most {}", kMaxListItems), ""});
    return;
  }
  for (const auto& [service, value] : versions.items()) {
    if (auto fine = check_version(service, value); !fine)
      problems.add(fine.error());
    else
      out.versions[service] = value.get<std::string>();
  }
}

void read_capabilities(Problems& problems, const Json& spec, NodeSpec& out) {
  out.capabilities = problems.take(get_strings(spec, "capabilities"));
  for (const std::string& c : out.capabilities) problems.take(check_word(c, "capability"));
  if (out.capabilities.size() > kMaxListItems) {
    problems.add(Code::kInvalid, Problem{"too_many_capabilities", "too many capabilities",
                                         fmt::format("at most {}", kMaxListItems), ""});
  }
  std::sort(out.capabilities.begin(), out.capabilities.end());
  out.capabilities.erase(std::unique(out.capabilities.begin(), out.capabilities.end()),
                         out.capabilities.end());
}

NodeSpec read_spec(Problems& problems, const Json& spec) {
  NodeSpec out;
  known_keys(problems, spec, kSpecKeys, "spec");
  out.addr = problems.take(get_string(spec, "addr"));
  if (spec.value("addr", Json()).is_string() || !spec.contains("addr") || spec["addr"].is_null()) {
    problems.take(check_addr(out.addr));
  }
  read_ssh(problems, spec, out.ssh);
  read_word(problems, spec, "acceptance", out.acceptance);
  read_word(problems, spec, "allocation", out.allocation);
  read_word(problems, spec, "availability", out.availability);
  out.host_group = problems.take(get_string(spec, "host_group"));
  if (!out.host_group.empty()) problems.take(check_word(out.host_group, "host group"));
  read_capabilities(problems, spec, out);
  read_labels(problems, spec, out);
  read_versions(problems, spec, out);
  const auto vars = get_object(spec, "vars");
  if (!vars)
    problems.add(vars.error());
  else if (auto fine = check_vars(*vars, "vars", kMaxNodeVarsBytes); !fine)
    problems.add(fine.error());
  else
    out.vars = *vars;
  return out;
}

bool is_secret_reference(const Json& value) {
  return value.is_object() && value.size() == 1 && value.contains("secret") &&
         value["secret"].is_string();
}

// A change of these means work on the node itself.
const std::set<std::string> kNeedsJob{"host_group", "capabilities", "availability",
                                      "versions",   "acceptance",   "allocation"};

}  // namespace

Result<NodeSpec> parse_spec(const Json& spec) {
  if (!spec.is_object()) {
    return fail(Code::kInvalid, "wrong_type",
                fmt::format("\"spec\" must be an object, not {}", spec.type_name()));
  }
  Problems problems;
  NodeSpec out = read_spec(problems, spec);
  if (!problems.empty()) return problems.refuse("spec");
  return out;
}

Result<NewNode> parse_new_node(const Json& body) {
  if (!body.is_object())
    return fail(Code::kInvalid, "not_an_object", "a node must be a JSON object");
  Problems problems;
  known_keys(problems, body, {"name", "spec"}, "a node");
  NewNode out;
  const auto name = get_string(body, "name");
  if (!name)
    problems.add(name.error());
  else
    problems.take(check_name(out.name = normal_host_name(*name)));
  const auto spec = get_object(body, "spec");
  if (!spec)
    problems.add(spec.error());
  else
    out.spec = read_spec(problems, *spec);
  if (!problems.empty()) return problems.refuse("the node cannot be added");
  out.acceptance_given = spec->contains("acceptance") && !(*spec)["acceptance"].is_null();
  return out;
}

Result<SpecPatch> apply_spec_patch(const Node& node, const Json& body) {
  if (!body.is_object())
    return fail(Code::kInvalid, "not_an_object", "a patch must be a JSON object");
  if (auto known = check_keys(body, {"spec"}, "a patch of a node"); !known)
    return fail(known.error());
  const auto patch = get_object(body, "spec");
  if (!patch) return fail(patch.error());
  Problems problems;
  // Before merging: a null of an unknown name would vanish unnoticed.
  known_keys(problems, *patch, kSpecKeys, "spec");
  if (!problems.empty()) return problems.refuse("the node cannot be changed");
  const Json before = to_json(node.spec);
  Json merged = before;
  merged.merge_patch(*patch);
  if (patch->contains("vars") && (*patch)["vars"].is_object()) {
    for (const auto& [name, value] : (*patch)["vars"].items()) {
      if (is_secret_reference(value)) merged["vars"][name] = value;
    }
  }
  auto spec = parse_spec(merged);
  if (!spec) return fail(spec.error());
  SpecPatch out{std::move(*spec), {}, {}};
  const Json after = to_json(out.spec);
  for (const std::string& key : kSpecKeys) {
    if (before[key] == after[key]) continue;
    out.changed.push_back(key);
    const bool kept = key == "allocation" && out.spec.allocation == Allocation::kInService;
    if (is_commissioned(node) && kNeedsJob.count(key) && !kept) out.needs_job.push_back(key);
  }
  std::sort(out.changed.begin(), out.changed.end());
  std::sort(out.needs_job.begin(), out.needs_job.end());
  return out;
}

Status check_patch(const Node& node, const SpecPatch& patch) {
  if (patch.needs_job.empty()) return {};
  Error error{Code::kConflict, "needs_job", "", "", {}};
  for (const std::string& field : patch.needs_job) {
    std::string hint = fmt::format("run `clusterctl node decommission {}`", node.name);
    if (field == "availability") {
      hint = fmt::format("run `clusterctl node {} {}`",
                         patch.spec.availability == Availability::kActive
                             ? "activate"
                             : word(patch.spec.availability),
                         node.name);
    } else if (field == "host_group") {
      hint = fmt::format("run `clusterctl node update {} --host-group={}`", node.name,
                         patch.spec.host_group);
    } else if (field == "capabilities") {
      hint = fmt::format("run `clusterctl node update {} --capabilities={}`", node.name,
                         join(patch.spec.capabilities, ","));
    } else if (field != "acceptance" && field != "allocation") {
      hint += fmt::format(", change it, then `clusterctl node commission {}`", node.name);
    }
    error.problems.push_back(
        {"needs_job",
         fmt::format("{} of {} cannot be changed while it is {}: it needs work on the node", field,
                     node.name, word(node.status.lifecycle)),
         std::move(hint), node.name});
  }
  error.message =
      fmt::format("{} of {} cannot be changed while it is {}: it needs work on the node",
                  join(patch.needs_job, ", "), node.name, word(node.status.lifecycle));
  error.hint = error.problems[0].hint;
  return fail(std::move(error));
}

}  // namespace clusterctl::fleet
