// Plans that are shown first and applied later: what is wanted is compared with the fleet, what is
// concerned is pinned, and applying changes records, globals and queue in one commit.
#include <fmt/format.h>

#include <algorithm>

#include "ansible/render.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "controller/by_prefix.h"
#include "controller/controller.h"
#include "controller/wanted_reader.h"
#include "fleet/conditions.h"
#include "fleet/node_json.h"
#include "fleet/problems.h"
#include "fleet/recognize.h"
#include "fleet/words.h"
#include "job/locks.h"

namespace clusterctl::controller {
namespace {

Event event(std::string type, const std::string& node, std::string message) {
  Event e;
  e.type = std::move(type);
  e.node = node;
  e.message = std::move(message);
  return e;
}

std::map<std::string, plan::Busy> busy_nodes(const State& now) {
  std::map<std::string, plan::Busy> out;
  for (const auto& [id, job] : now.jobs) {
    if (job::is_final(job->state) || job::read_only(*job)) continue;
    for (const job::NodeOutcome& n : job->nodes) out.try_emplace(n.node, plan::Busy{id, job->kind});
  }
  return out;
}

std::string globals_digest(const fleet::Snapshot& fleet) {
  return sha256_hex(dump_json(fleet.globals));
}

Pin pin_of(const fleet::Node* node, const std::string& new_id) {
  if (!node) return {new_id, 0, ""};
  return {node->id, node->generation, std::string(fleet::word(node->status.lifecycle))};
}

std::string described(const Pin& pin) {
  return pin.generation == 0 ? "not there"
                             : fmt::format("generation {}, {}", pin.generation, pin.lifecycle);
}

std::string title_of(const plan::Difference& d) {
  size_t counts[3] = {0, 0, 0};
  for (const plan::NodeDifference& n : d.nodes) ++counts[static_cast<size_t>(n.what)];
  std::vector<std::string> parts;
  static constexpr const char* kWords[] = {"add", "change", "remove"};
  for (int i = 0; i < 3; ++i) {
    if (counts[i] > 0)
      parts.push_back(fmt::format("{} {} node{}", kWords[i], counts[i], counts[i] == 1 ? "" : "s"));
  }
  if (!d.globals.empty())
    parts.push_back(fmt::format("{} global{}", d.globals.size(), d.globals.size() == 1 ? "" : "s"));
  for (const plan::Step& s : d.steps) parts.push_back(s.plan.title);
  return parts.empty() ? "nothing to do" : join(parts, "; ");
}

}  // namespace

// The stored plan holds the nodes it concerns and no others: what happens to those does not matter.
void Controller::pin(StoredPlan& stored, const plan::Difference& d, const State& now) const {
  plan::Wanted& w = *stored.wanted;
  std::erase_if(w.nodes, [&](const plan::WantedNode& n) { return d.affected.count(n.name) == 0; });
  w.remove.clear();
  w.prune = w.reading == plan::Reading::kWhole;  // of those that are named now
  for (const plan::NodeDifference& n : d.nodes) {
    if (n.what == plan::NodeDifference::What::kRemove) w.remove.push_back(n.name);
  }
  if (d.globals.empty()) w.globals.reset();
  std::map<std::string, const fleet::Node*> by_name;
  for (const auto& [id, node] : now.fleet->nodes) by_name[node.name] = &node;
  std::map<std::string, std::string> ids;
  for (const std::string& name : d.affected) {
    const auto it = by_name.find(name);
    const auto fresh = stored.new_ids.find(name);
    const std::string new_id = fresh == stored.new_ids.end() ? "" : fresh->second;
    if (it == by_name.end()) ids[name] = new_id;
    stored.pins[name] = pin_of(it == by_name.end() ? nullptr : it->second, new_id);
  }
  stored.new_ids = std::move(ids);
}

Result<Json> Controller::create_plan(const Json& body, const std::string& initiator, Once* once) {
  auto request = read_plan_request(body);
  if (!request) return fail(request.error());
  const std::string digest = request_digest("POST /v1/plans", body);
  if (once && !once->key.empty()) {  // before it is planned: what was applied is not to do again
    MutexLock lock(mutex_);
    if (auto known = plan_of_key(once->key, digest); !known) return fail(known.error());
  }
  const auto now = state();
  StoredPlan stored;
  stored.initiator = initiator;
  stored.created = deps_.clock.now();
  std::map<std::string, Json> values;  // of secrets, by their final names
  Json shown;
  if (!request->job.is_null()) {
    if (auto done = plan_job(*now, request->job, stored, values, shown); !done)
      return fail(done.error());
  } else {
    WantedReader reader(*now, secret_names_, deps_.variables.types, deps_.ids);
    auto wanted = request->revision ? wanted_at(*now, *request->revision) : reader.read(*request);
    if (!wanted) return fail(wanted.error());
    if (request->revision) reader.give_ids(*wanted);
    wanted->prune = request->prune;
    wanted->work = request->work;
    wanted->options = request->options;
    stored.new_ids = reader.new_ids();
    values = reader.take_values();
    auto d = plan::difference(
        {*now->fleet, deps_.catalog, busy_nodes(*now), stored.new_ids, deps_.clock.now()}, *wanted);
    if (!d) return fail(d.error());
    stored.title = title_of(*d);
    shown = plan::to_json(*d);
    stored.wanted = std::move(*wanted);
    pin(stored, *d, *now);
    if (d->nothing()) request->dry_run = true;  // there is nothing that could be applied
  }
  stored.globals = globals_digest(*now->fleet);
  shown["title"] = stored.title;
  if (request->dry_run) return shown;
  return store_plan(std::move(stored), values, std::move(shown), digest, once);
}

Result<std::shared_ptr<const StoredPlan>> Controller::plan_of_key(const std::string& key,
                                                                  const std::string& digest) const {
  const auto made = made_by(key, digest);
  if (!made) return fail(made.error());
  if (!*made) return std::shared_ptr<const StoredPlan>();
  const auto now = state();
  const auto it = now->plans.find(**made);
  if (it == now->plans.end()) return made_is_gone("plan " + **made);
  if (it->second->applied) {
    return fail(Code::kConflict, "plan_applied",
                fmt::format("this Idempotency-Key has made plan {}, which was applied at {}",
                            it->first, format_time(*it->second->applied)),
                "use a new key to plan anew");
  }
  if (auto fits = check_pins(*it->second, *now); !fits) return fail(fits.error());
  return it->second;
}

Result<Json> Controller::store_plan(StoredPlan stored, const std::map<std::string, Json>& values,
                                    Json shown, const std::string& digest, Once* once) {
  const auto show = [&shown](const StoredPlan& plan) {
    shown["id"] = plan.id;
    shown["title"] = plan.title;
    shown["created"] = format_time(plan.created);
    shown["expires"] = format_time(plan.created + kPlanKept);
    return std::move(shown);
  };
  const std::string key = once ? once->key : "";
  MutexLock lock(mutex_);
  const auto known = plan_of_key(key, digest);
  if (!known) return fail(known.error());
  if (*known) {
    once->repeated = true;
    return show(**known);
  }
  stored.id = deps_.ids.ulid();
  Change change;
  for (const auto& [name, value] : values) {
    const std::string waiting = fmt::format("plan.{}.{}", stored.id, stored.secrets.size());
    change.secrets[waiting] = value;
    stored.secrets[name] = waiting;
  }
  const auto now = state();
  auto old = now->plans.begin();
  for (size_t n = now->plans.size(); n >= kKeptPlans && old != now->plans.end(); --n, ++old)
    drop_plan(*old->second, change);
  remember(key, digest, stored.id, change);
  Json out = show(stored);
  change.plans[stored.id] = std::move(stored);
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return out;
}

Status Controller::plan_job(const State& now, const Json& body, StoredPlan& stored,
                            std::map<std::string, Json>& values, Json& shown) const {
  auto request = plan::parse_request(body);
  if (!request) return fail(request.error());
  if (auto ok = ansible::check_var_names(request->vars, "vars"); !ok) return ok;
  if (auto ok = check_types(request->vars, deps_.variables.types, "vars"); !ok) return ok;
  auto plan = plan::make_plan(*now.fleet, deps_.catalog, *request);
  if (!plan) return fail(plan.error());
  Json kept = body;
  kept.erase("dry_run");
  auto vars = hide_secrets(request->vars, secret_names_, "plan", now.secrets, values);
  if (!vars) return fail(vars.error());
  if (!request->vars.empty()) kept["vars"] = std::move(*vars);
  stored.job = std::move(kept);
  stored.title = plan->title;
  for (const std::string& id : plan->targets) {
    const fleet::Node& node = now.fleet->nodes.at(id);
    stored.pins[node.name] = pin_of(&node, "");
  }
  shown = {{"nodes", Json::array()}, {"globals", Json::array()},  {"missing", Json::array()},
           {"unchanged", 0},         {"warnings", Json::array()}, {"nothing", false}};
  shown["steps"] = Json::array({plan::to_json(*plan, *now.fleet)});
  return {};
}

// Names every node that is not what it was when the plan was made.
Status Controller::check_pins(const StoredPlan& stored, const State& now) const {
  std::map<std::string, const fleet::Node*> by_name;
  for (const auto& [id, node] : now.fleet->nodes) by_name[node.name] = &node;
  Error error{Code::kStale, "plan_stale", "", "plan again: clusterctl plan, clusterctl apply", {}};
  for (const auto& [name, pinned] : stored.pins) {
    const auto it = by_name.find(name);
    const Pin found = it == by_name.end() ? Pin{pinned.id, 0, ""} : pin_of(it->second, "");
    if (found == pinned) continue;
    const bool other = found.generation != 0 && pinned.generation != 0 && found.id != pinned.id;
    error.problems.push_back(
        {"plan_stale",
         other ? "is another node of that name by now"
               : fmt::format("was {}, is {}", described(pinned), described(found)),
         "", name});
  }
  if (globals_digest(*now.fleet) != stored.globals)
    error.problems.push_back({"plan_stale", "the global variables were changed", "", ""});
  if (error.problems.empty()) return {};
  const Problem& first = error.problems[0];
  error.message = fmt::format(
      "plan {} does not fit any more: {}{}{}", stored.id,
      first.node.empty() ? "" : first.node + " ", first.message,
      error.problems.size() == 1 ? "" : fmt::format(" (and {} more)", error.problems.size() - 1));
  return fail(std::move(error));
}

Result<std::shared_ptr<const StoredPlan>> Controller::find_plan(std::string_view ref) const {
  const auto now = state();
  const auto first = now->plans.lower_bound(std::string(ref));
  const bool hit = first != now->plans.end() && first->first.starts_with(ref) && ref.size() >= 4;
  if (!hit) {
    return fail(Code::kNotFound, "no_such_plan",
                fmt::format("there is no plan \"{}\"", truncate_utf8(one_line(ref), 80)),
                "plans are kept for a day; make a new one");
  }
  if (const auto second = std::next(first);
      first->first != ref && second != now->plans.end() && second->first.starts_with(ref)) {
    return ambiguous(now->plans, ref, "plans");
  }
  return first->second;
}

Result<AppliedPlan> Controller::apply_plan(std::string_view ref, const std::string& initiator,
                                           const std::string& key) {
  const std::string digest = request_digest(fmt::format("POST /v1/plans/{}/apply", ref), {});
  MutexLock lock(mutex_);
  const auto made = made_by(key, digest);
  if (!made) return fail(made.error());
  auto found = find_plan(*made ? std::string_view(**made) : ref);
  if (!found && *made) return made_is_gone("the jobs of plan " + **made);
  if (!found) return fail(found.error());
  StoredPlan stored = **found;
  if (stored.applied) return AppliedPlan{stored.id, stored.jobs, true};  // asked for twice
  const auto now = state();
  if (auto fits = check_pins(stored, *now); !fits) return fail(fits.error());
  Change change;
  change.by = initiator;
  change.what = stored.title;
  for (const auto& [name, waiting] : stored.secrets) change.secrets[waiting] = std::nullopt;
  auto done = stored.wanted ? apply_wanted(stored, *now, initiator, change)
                            : apply_job(stored, *now, initiator, change);
  if (!done) return fail(done.error());
  stored.applied = deps_.clock.now();
  if (stored.wanted) stored.wanted->nodes.clear();
  stored.secrets.clear();
  AppliedPlan out{stored.id, stored.jobs, false};
  remember(key, digest, stored.id, change);
  change.plans[stored.id] = std::move(stored);
  if (auto committed = commit(std::move(change)); !committed) return fail(committed.error());
  return out;
}

Status Controller::apply_job(StoredPlan& stored, const State& now, const std::string& initiator,
                             Change& change) {
  auto request = plan::parse_request(stored.job);
  if (!request) return fail(request.error());
  std::map<std::string, Json> values;
  for (const auto& [name, waiting] : stored.secrets) values[name] = now.secrets.at(waiting);
  auto vars = resolve_known(request->vars, values);
  if (!vars) return fail(vars.error());
  request->vars = std::move(*vars);
  auto plan = plan::make_plan(*now.fleet, deps_.catalog, *request);
  if (!plan) return fail(plan.error());
  *request = plan::pinned(*request, *plan, *now.fleet);
  if (auto ok = check_busy(now, *request); !ok) return ok;
  auto job = draft(*request, *plan, {initiator}, change);
  if (!job) return fail(job.error());
  stored.jobs.push_back(job->id);
  return {};
}

Status Controller::apply_wanted(StoredPlan& stored, const State& now, const std::string& initiator,
                                Change& change) {
  auto d = plan::difference(
      {*now.fleet, deps_.catalog, busy_nodes(now), stored.new_ids, deps_.clock.now()},
      *stored.wanted);
  if (!d) return fail(d.error());
  for (const std::string& name : d->affected) {
    if (stored.pins.count(name)) continue;
    return fail(
        Code::kStale, "plan_stale",
        fmt::format("plan {} does not fit any more: it concerns {} by now", stored.id, name),
        "plan again: clusterctl plan, clusterctl apply");
  }
  for (const auto& [name, waiting] : stored.secrets) change.secrets[name] = now.secrets.at(waiting);
  change_records(now, *d, change);
  std::string after;
  for (const plan::Step& step : d->steps) {
    if (auto ok = check_busy(now, step.request); !ok) return ok;
    auto job = draft(step.request, step.plan, {initiator}, change);
    if (!job) return fail(job.error());
    job::Job& chained = change.jobs.at(job->id);
    chained.chain = {stored.id, after, step.removes};
    after = job->id;
    stored.jobs.push_back(job->id);
  }
  return {};
}

void Controller::change_records(const State& now, const plan::Difference& d, Change& change) {
  const auto forget = [&](const Json& before, const Json& after, const std::string& owner) {
    auto gone = secret_references(before);
    const auto still = secret_references(after);
    std::erase_if(gone, [&](const std::string& name) {
      return still.count(name) != 0 || change.secrets.count(name) != 0;
    });
    forget_secrets(now, gone, owner, change);
  };
  fleet::Snapshot fleet = d.after;
  std::set<std::string> changed, other_keys;  // ids
  for (const plan::NodeDifference& n : d.nodes) {
    if (!n.record) continue;
    const auto before = now.fleet->nodes.find(n.id);
    if (n.what == plan::NodeDifference::What::kRemove) {
      remove_record(now, before->second, "", change);
      continue;
    }
    changed.insert(n.id);
    const fleet::Node& node = fleet.nodes.at(n.id);
    const bool fresh = before == now.fleet->nodes.end();
    if (fresh || before->second.spec.ssh.host_key != node.spec.ssh.host_key)
      other_keys.insert(n.id);
    if (!fresh) forget(before->second.spec.vars, node.spec.vars, n.id);
  }
  fleet::settle_conflicts(fleet, other_keys, deps_.clock.now(), changed);
  for (const std::string& id : changed) {
    const fleet::Node& node = fleet.nodes.at(id);
    const auto before = now.fleet->nodes.find(id);
    fleet::Node old = node;
    if (before == now.fleet->nodes.end()) {
      change.events.push_back(event("node.added", node.name, node.spec.addr));
      old.status.conditions.clear();
    } else {
      old = before->second;
    }
    add_events(change, old, node, "");
    change.nodes[id] = node;
  }
  if (d.globals.empty()) return;
  forget(now.fleet->globals, d.after.globals, "");
  change.globals = d.after.globals;
  change.events.push_back(
      event("globals.updated", "", fmt::format("{} variables", d.after.globals.size())));
}

void Controller::drop_plan(const StoredPlan& stored, Change& change) {
  for (const auto& [name, waiting] : stored.secrets) change.secrets[waiting] = std::nullopt;
  change.plans[stored.id] = std::nullopt;
}

void Controller::expire_plans() {
  const auto now = state();
  Change change;
  for (const auto& [id, stored] : now->plans) {
    if (deps_.clock.now() - stored->created >= kPlanKept) drop_plan(*stored, change);
  }
  if (change.plans.empty()) return;
  if (auto done = commit(std::move(change)); !done)
    log::warn("old plans cannot be removed: {}", done.error().line());
}

}  // namespace clusterctl::controller
