#include "controller/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "ansible/render.h"
#include "base/log.h"
#include "base/strings.h"
#include "controller/by_prefix.h"
#include "controller/node_change.h"
#include "fleet/node_json.h"
#include "fleet/operation.h"
#include "fleet/patterns.h"
#include "fleet/recognize.h"
#include "fleet/tombstone.h"

namespace clusterctl::controller {
namespace {

// "labels, ssh"
std::string changed_fields(const fleet::Node& before, const fleet::Node& after) {
  const Json was = fleet::to_json(before.spec), is = fleet::to_json(after.spec);
  std::vector<std::string> names;
  for (const auto& [name, value] : is.items()) {
    if (was[name] != value) names.push_back(name);
  }
  return join(names, ", ");
}

Event node_event(std::string type, const fleet::Node& node, std::string message) {
  Event e;
  e.type = std::move(type);
  e.node = node.name;
  e.message = std::move(message);
  return e;
}

}  // namespace

Status check_version(std::string_view what, uint64_t version, const IfMatch& if_match) {
  const auto now = static_cast<int64_t>(version);
  if (!if_match || std::find(if_match->begin(), if_match->end(), now) != if_match->end()) return {};
  return fail(Code::kStale, "stale", fmt::format("{} is at version {} by now", what, now),
              "read it again and repeat the change");
}

Controller::Controller(Deps deps)
    : deps_(std::move(deps)),
      secret_names_(deps_.variables.no_log),
      writer_(deps_.store, deps_.clock, events_, deps_.settings.own_host) {}

Controller::~Controller() {
  stop();
}

Status Controller::commit(Change change) {
  const auto managers = derive(change);
  change.history = history_of(*state(), change);
  const auto ended = Tallies::of(*state(), change);
  auto done = writer_.commit(std::move(change));
  if (done) {
    tallies_.add(ended);
    derive_all_ = false;
    if (managers) managers_seen_ = *managers;
    dirty_ = true;
    changed_.notify_all();
  }
  return done;
}

Result<Json> Controller::hide(const Json& vars, const std::string& scope, Change& change) const {
  std::map<std::string, Json> values;
  auto hidden = hide_secrets(vars, secret_names_, scope, state()->secrets, values);
  for (auto& [name, value] : values) change.secrets[name] = std::move(value);
  return hidden;
}

// A reference may have been copied to another object: its value goes with the last one. `owner` is
// the node whose variables no longer count, or empty for the globals.
void Controller::forget_secrets(const State& now, const std::set<std::string>& names,
                                const std::string& owner, Change& change) {
  if (names.empty()) return;
  std::set<std::string> used;
  if (!owner.empty()) used.merge(secret_references(now.fleet->globals));
  for (const auto& [id, node] : now.fleet->nodes) {
    if (id != owner) used.merge(secret_references(node.spec.vars));
  }
  for (const auto& [id, job] : now.jobs) {
    if (!job::is_final(job->state)) used.merge(secret_references(job->request.vars));
  }
  for (const std::string& name : names) {
    if (!used.count(name)) change.secrets[name] = std::nullopt;
  }
}

void Controller::add_events(Change& change, const fleet::Node& before, const fleet::Node& after,
                            const std::string& job) const {
  const auto add = [&](Event e) {
    e.job = job;
    change.events.push_back(std::move(e));
  };
  if (before.status.lifecycle != after.status.lifecycle) {
    add(node_event("node.lifecycle", after,
                   fmt::format("{} → {}", fleet::word(before.status.lifecycle),
                               fleet::word(after.status.lifecycle))));
  }
  if (before.status.presence != after.status.presence) {
    add(node_event("node.presence", after,
                   fmt::format("{} → {}", fleet::word(before.status.presence),
                               fleet::word(after.status.presence))));
    if (after.status.presence == fleet::Presence::kDiscovered && !fleet::is_commissioned(after) &&
        fleet::has_condition(after.status, fleet::condition::kNotCleaned)) {
      add(node_event("node.returned", after,
                     "it was removed without a cleanup and answers again: the next commission "
                     "cleans it first"));
    }
  }
  for (const fleet::Condition& c : after.status.conditions) {
    if (!fleet::has_condition(before.status, c.type))
      add(node_event("node.condition", after, c.type + ": " + c.reason));
  }
  for (const fleet::Condition& c : before.status.conditions) {
    if (!fleet::has_condition(after.status, c.type))
      add(node_event("node.condition", after, c.type + " cleared"));
  }
  if (before.generation != after.generation)
    add(node_event("node.updated", after, "spec changed: " + changed_fields(before, after)));
}

Result<fleet::Node> Controller::add_node(const Json& body, const By& by, Once* once) {
  auto request = fleet::parse_new_node(body);
  if (!request) return fail(request.error());
  if (auto ok = ansible::check_var_names(request->spec.vars, "spec.vars"); !ok)
    return fail(ok.error());
  if (auto ok = check_types(request->spec.vars, deps_.variables.types, "spec.vars"); !ok)
    return fail(ok.error());
  if (!request->spec.host_group.empty() && !deps_.catalog.host_group(request->spec.host_group)) {
    return fail(Code::kInvalid, "unknown_host_group",
                fmt::format("there is no host group \"{}\"", request->spec.host_group),
                "known: " + join(deps_.catalog.host_group_names(), ", "));
  }
  if (deps_.catalog.host_group(request->name)) {
    return fail(Code::kInvalid, "reserved_name",
                fmt::format("\"{}\" is the name of a host group", request->name),
                "choose another name");
  }
  const std::string key = once ? once->key : "", digest = request_digest("POST /v1/nodes", body);
  MutexLock lock(mutex_);
  const auto made = made_by(key, digest);
  if (!made) return fail(made.error());
  if (*made) {
    const auto known = fleet()->nodes.find(**made);
    if (known == fleet()->nodes.end()) return made_is_gone("node " + **made);
    once->repeated = true;
    return known->second;
  }
  Change change;
  change.what = "add " + request->name;
  const auto snapshot = fleet();
  auto node = fleet::add_node(*snapshot, *request, deps_.ids.node_id(), deps_.clock.now());
  if (!node) return node;
  auto vars = hide(node->spec.vars, "node." + node->id, change);
  if (!vars) return fail(vars.error());
  node->spec.vars = std::move(*vars);
  change.events.push_back(node_event("node.added", *node, node->spec.addr));
  if (fleet::Node before = *node; fleet::mark_returned(*snapshot, *node, deps_.clock.now()))
    add_events(change, before, *node, "");
  change.nodes[node->id] = *node;
  remember(key, digest, node->id, change);
  change.by = by.who;
  change.reason = by.reason;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return fleet()->nodes.at(node->id);
}

Result<fleet::Node> Controller::patch_node(std::string_view ref, const Json& patch,
                                           const IfMatch& if_match, const By& by) {
  MutexLock lock(mutex_);
  const auto snapshot = fleet();
  const auto found = snapshot->find(ref);
  if (!found) return fail(found.error());
  if (auto ok = check_version("node " + (*found)->name, (*found)->resource_version, if_match); !ok)
    return fail(ok.error());
  fleet::Node node = **found;
  Change change;
  change.what = "change " + node.name;
  Json hidden = patch;
  if (patch.is_object() && patch.contains("spec") && patch["spec"].is_object() &&
      patch["spec"].contains("vars") && patch["spec"]["vars"].is_object()) {
    if (auto ok = ansible::check_var_names(patch["spec"]["vars"], "spec.vars"); !ok)
      return fail(ok.error());
    if (auto ok = check_types(patch["spec"]["vars"], deps_.variables.types, "spec.vars"); !ok)
      return fail(ok.error());
    auto vars = hide(patch["spec"]["vars"], "node." + node.id, change);
    if (!vars) return fail(vars.error());
    hidden["spec"]["vars"] = std::move(*vars);
  }
  auto changed = fleet::patch_node(*snapshot, node, hidden, deps_.clock.now());
  if (!changed) return fail(changed.error());
  if (!node.spec.host_group.empty() && !deps_.catalog.host_group(node.spec.host_group)) {
    return fail(Code::kInvalid, "unknown_host_group",
                fmt::format("there is no host group \"{}\"", node.spec.host_group),
                "known: " + join(deps_.catalog.host_group_names(), ", "));
  }
  const fleet::NodeSpec& before = (*found)->spec;
  const bool elsewhere = node.spec.addr != before.addr || !(node.spec.ssh == before.ssh);
  const bool other_work = node.spec.host_group != before.host_group ||
                          node.spec.capabilities != before.capabilities ||
                          node.spec.versions != before.versions;
  if (elsewhere || other_work) {  // the next stage of a job must go where the last one went
    if (auto ok = check_not_worked_on(node, false); !ok) return fail(ok.error());
  }
  if (!*changed && change.secrets.empty()) return node;
  const auto still = secret_references(node.spec.vars);
  auto gone = secret_references((*found)->spec.vars);
  std::erase_if(gone, [&](const std::string& name) { return still.count(name) != 0; });
  forget_secrets(*state(), gone, node.id, change);
  fleet::Snapshot after = *snapshot;
  after.nodes[node.id] = node;
  take_changed(after, {node.id}, change);
  node = after.nodes.at(node.id);
  change.by = by.who;
  change.reason = by.reason;
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return fleet()->nodes.at(node.id);
}

Status Controller::check_not_worked_on(const fleet::Node& node, bool also_queued) const {
  const auto now = state();
  for (const auto& [id, job] : now->jobs) {
    if (job::is_final(job->state) || !job->outcome(node.id)) continue;
    if (job->state == job::State::kQueued && !also_queued)
      continue;  // it is planned when it starts
    return fail(Code::kConflict, "busy",
                fmt::format("job {} ({}, {}) works on node {}", id, job->kind, to_word(job->state),
                            node.name),
                job->state == job::State::kPaused
                    ? fmt::format("clusterctl job resume {0}, or clusterctl job cancel {0}", id)
                    : fmt::format("wait for it: clusterctl job wait {}", id));
  }
  return {};
}

Status Controller::remove_node(std::string_view ref, const IfMatch& if_match, const By& by) {
  MutexLock lock(mutex_);
  const auto now = state();
  const auto found = now->fleet->find(ref);
  if (!found) return fail(found.error());
  const fleet::Node& node = **found;
  if (auto ok = check_version("node " + node.name, node.resource_version, if_match); !ok) return ok;
  if (auto ok = check_not_worked_on(node, true); !ok) return ok;
  if (auto ok = fleet::check_removable(node); !ok) return ok;
  Change change;
  change.by = by.who;
  change.reason = by.reason;
  change.what = "remove " + node.name;
  remove_record(*now, node, "", change);
  if (fleet::has_condition(node.status, fleet::condition::kIdentityConflict)) {
    fleet::Snapshot after = *now->fleet;  // who was in conflict with it, is no more
    after.nodes.erase(node.id);
    std::set<std::string> changed;
    fleet::settle_conflicts(after, {}, deps_.clock.now(), changed);
    take_changed(after, std::move(changed), change);
  }
  return commit(std::move(change));
}

// `node`: as it is when it goes. `job`: that removes it, or empty.
void Controller::remove_record(const State& now, const fleet::Node& node, const std::string& job,
                               Change& change) const {
  change.nodes.erase(node.id);
  change.removed_nodes.insert(node.id);
  const auto tombstone = fleet::tombstone_of(node, deps_.clock.now());
  if (tombstone) change.tombstones[node.id] = tombstone;
  if (node.status.requested && !node.status.requested->leave_digest.empty())
    remember_departed(now.departed, node.id,
                      {node.status.requested->leave_digest, deps_.clock.now()}, change.departed);
  auto gone = secret_references(node.spec.vars);
  std::erase_if(gone, [&](const std::string& name) { return change.secrets.count(name) != 0; });
  forget_secrets(now, gone, node.id, change);
  Event removed = node_event(
      "node.removed", node,
      node.spec.addr +
          (tombstone ? "; it owes a cleanup and is known again when it comes back" : ""));
  removed.job = job;
  change.events.push_back(std::move(removed));
}

Result<std::vector<Problem>> Controller::set_globals(const Json& vars, bool merge,
                                                     const IfMatch& if_match, const By& by) {
  if (!vars.is_object())
    return fail(Code::kInvalid, "not_an_object", "global variables must be a JSON object");
  if (auto ok = ansible::check_var_names(vars, "globals"); !ok) return fail(ok.error());
  if (auto ok = fleet::check_vars(vars, "globals", fleet::kMaxRequestVarsBytes); !ok)
    return fail(ok.error());
  if (auto ok = check_types(vars, deps_.variables.types, "globals"); !ok) return fail(ok.error());
  MutexLock lock(mutex_);
  const auto now = state();
  if (auto ok = check_version("the global variables", now->globals_revision, if_match); !ok)
    return fail(ok.error());
  Change change;
  change.by = by.who;
  change.what = "set globals";
  auto hidden = hide(vars, "globals", change);
  if (!hidden) return fail(hidden.error());
  Json next = merge ? now->fleet->globals : Json::object();
  for (const auto& [name, value] : hidden->items()) {
    if (merge && value.is_null()) {
      next.erase(name);
    } else {
      next[name] = value;
    }
  }
  const auto still = secret_references(next);
  auto gone = secret_references(now->fleet->globals);
  std::erase_if(gone, [&](const std::string& name) { return still.count(name) != 0; });
  forget_secrets(*now, gone, "", change);
  std::vector<Problem> warnings;
  for (const auto& [name, value] : vars.items()) {
    if (value.is_null() || deps_.variables.known.count(name) || deps_.variables.known.empty())
      continue;
    const std::string near =
        nearest(name, {deps_.variables.known.begin(), deps_.variables.known.end()});
    warnings.push_back({"unknown_variable", fmt::format("no role knows the variable \"{}\"", name),
                        near.empty() ? "" : fmt::format("did you mean \"{}\"?", near), ""});
  }
  change.globals = std::move(next);
  change.events.push_back(
      {0, {}, "globals.updated", "", "", fmt::format("{} variables", change.globals->size())});
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return warnings;
}

Result<std::shared_ptr<const job::Job>> Controller::find_job(std::string_view ref) const {
  const auto now = state();
  const auto& jobs = now->jobs;
  if (ref == "last" && !jobs.empty()) return jobs.rbegin()->second;
  if (ref == "active") {  // what runs goes before what waits
    for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
      if (it->second->state == job::State::kRunning) return it->second;
    }
    for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
      if (!job::is_final(it->second->state)) return it->second;
    }
    return fail(Code::kNotFound, "no_active_job", "no job is active",
                "clusterctl job ls shows the ended ones");
  }
  const auto first = jobs.lower_bound(std::string(ref));
  const bool hit = first != jobs.end() && first->first.starts_with(ref) &&
                   (ref.size() >= 4 || first->first == ref);
  if (!hit)
    return fail(Code::kNotFound, "no_such_job",
                fmt::format("there is no job \"{}\"", one_line(ref)),
                "clusterctl job ls lists them");
  if (const auto second = std::next(first);
      first->first != ref && second != jobs.end() && second->first.starts_with(ref)) {
    return ambiguous(jobs, ref, "jobs");
  }
  return first->second;
}

std::map<std::string, job::Conflict> Controller::waiting(const State& now) const {
  std::vector<const job::Job*> open;
  int running = 0;
  for (const auto& [id, job] : now.jobs) {
    if (job::is_final(job->state)) continue;
    open.push_back(job.get());
    running += job->state == job::State::kRunning && !job::urgent(*job);
  }
  const bool full = running >= deps_.settings.max_parallel_runs;
  const auto conflicts = job::conflicts(open);
  std::map<std::string, job::Conflict> out;
  for (size_t i = 0; i < open.size(); ++i) {
    const job::Job& job = *open[i];
    const bool resumed = job.state == job::State::kPaused && !job.pause.requested;
    if (conflicts[i]) {
      out[job.id] = *conflicts[i];
    } else if (full && (resumed || job.state == job::State::kQueued) && !job::urgent(job)) {
      out[job.id] = {"", "", "parallel_runs"};
    }
  }
  return out;
}

std::optional<job::Job> Controller::current(const std::string& job_id) const {
  const auto now = state();
  const auto it = now->jobs.find(job_id);
  return it == now->jobs.end() ? std::nullopt : std::optional(*it->second);
}

Result<job::Resolved> Controller::resolve(const Json& vars) const {
  return resolve_secrets(vars, state()->secrets);
}

}  // namespace clusterctl::controller
