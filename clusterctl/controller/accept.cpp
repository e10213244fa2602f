// Accepting work: from a request to a queued job, all problems first, nothing
// changed by a refusal.
#include <fmt/format.h>

#include <algorithm>

#include "ansible/render.h"
#include "base/strings.h"
#include "base/time.h"
#include "controller/controller.h"
#include "controller/wishes.h"
#include "fleet/operation.h"
#include "job/finish.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

job::StageStatus pending(const plan::Stage& def) {
  job::StageStatus stage;
  stage.def = def;
  return stage;
}

// A request may say which version of its one node it was made for.
Status check_named_version(const fleet::Snapshot& fleet, const plan::Request& request,
                           const IfMatch& if_match) {
  if (!if_match) return {};
  if (request.nodes.size() != 1) {
    return fail(Code::kInvalid, "bad_if_match", "If-Match needs a request that names one node",
                "leave it out, or name the nodes one by one");
  }
  const auto node = fleet.find(request.nodes[0]);
  if (!node) return fail(node.error());
  return check_version("node " + (*node)->name, (*node)->resource_version, if_match);
}

}  // namespace

// A node that another job of the same kind works on is a duplicate; another kind waits, or is
// refused on request.
Status Controller::check_busy(const State& now, const plan::Request& request) const {
  std::vector<std::string> refs = request.nodes;
  if (!request.with.empty()) refs.push_back(request.with);
  for (const std::string& ref : refs) {
    const auto node = now.fleet->find(ref);
    if (!node) continue;  // the plan reports it
    for (const auto& [id, job] : now.jobs) {
      if (job::is_final(job->state) || !job->outcome((*node)->id)) continue;
      if (job->kind == request.kind) {
        return fail(Code::kConflict, "duplicate",
                    fmt::format("node {} is already in job {} ({}, {})", (*node)->name, id,
                                job->kind, to_word(job->state)),
                    job->state == job::State::kPaused
                        ? fmt::format("it is paused: clusterctl job resume {}", id)
                        : fmt::format("follow it: clusterctl job logs -f {}", id));
      }
      if (request.if_busy == "refuse") {
        return fail(Code::kConflict, "busy",
                    fmt::format("node {} is held by job {} ({})", (*node)->name, id, job->kind),
                    fmt::format("wait for it: clusterctl job wait {}", id));
      }
    }
  }
  return {};
}

Result<std::optional<std::string>> Controller::made_by(const std::string& key,
                                                       const std::string& digest) const {
  return writer_.keys().find(key, digest, deps_.clock.now());
}

void Controller::remember(const std::string& key, const std::string& digest,
                          const std::string& made, Change& change) const {
  writer_.keys().remember(key, {digest, made, deps_.clock.now()}, change.keys);
}

Result<Accepted> Controller::made_job(const std::string& id) const {
  const auto now = state();
  const auto it = now->jobs.find(id);
  if (it == now->jobs.end()) return made_is_gone("job " + id);
  return Accepted{*it->second, {}, {}, true};
}

Result<Accepted> Controller::create_job(const Json& body, const std::string& initiator,
                                        const std::string& key, const IfMatch& if_match) {
  auto request = plan::parse_request(body);
  if (!request) return fail(request.error());
  if (auto ok = ansible::check_var_names(request->vars, "vars"); !ok) return fail(ok.error());
  if (auto ok = check_types(request->vars, deps_.variables.types, "vars"); !ok)
    return fail(ok.error());

  const std::string digest = request_digest("POST /v1/jobs", body);
  MutexLock lock(mutex_);
  const auto made = made_by(key, digest);
  if (!made) return fail(made.error());
  if (*made) return made_job(**made);
  if (request->until && *request->until <= deps_.clock.now()) {
    return fail(Code::kInvalid, "until_past",
                fmt::format("\"until\" has passed: {}", format_time(*request->until)),
                "give a time that is to come, or how long with \"for\"");
  }
  const auto now = state();
  if (auto ok = check_named_version(*now->fleet, *request, if_match); !ok) return fail(ok.error());
  if (!request->dry_run) {
    if (auto ok = check_busy(*now, *request); !ok) return fail(ok.error());
  }
  auto plan = plan::make_plan(*now->fleet, deps_.catalog, *request);
  if (!plan) return fail(plan.error());
  if (request->dry_run) return Accepted{std::nullopt, plan::to_json(*plan, *now->fleet), {}, false};
  *request = plan::pinned(*request, *plan,
                          *now->fleet);  // what is meant now, also when the job starts later
  if (auto ok = check_busy(*now, *request); !ok) return fail(ok.error());
  auto job = accept(*request, *plan, {initiator, key, digest});
  if (!job) return fail(job.error());
  return Accepted{std::move(*job), {}, {}, false};
}

Result<job::Job> Controller::draft(const plan::Request& request, const plan::Plan& plan,
                                   const Origin& origin, Change& change) {
  const auto snapshot = fleet();
  // A record may be changed in the same commit already.
  const auto record = [&](const std::string& id) -> const fleet::Node& {
    const auto changed = change.nodes.find(id);
    return changed == change.nodes.end() ? snapshot->nodes.at(id) : changed->second;
  };
  job::Job job;
  job.id = deps_.ids.ulid();
  job.kind = plan.kind;
  job.title = plan.title;
  job.initiator = origin.initiator;
  job.request = request;
  job.created = deps_.clock.now();
  job.roles = plan.roles;
  job.changes = plan.changes;
  job.cleanup = plan.cleanup;
  job.put_back = plan.put_back;
  job.parts = plan.parts;
  job.warnings = plan.warnings;
  for (const plan::Stage& stage : plan.stages) job.stages.push_back(pending(stage));

  if (!origin.continues) {
    const size_t secrets = change.secrets.size();
    auto vars = hide(request.vars, "job." + job.id, change);
    if (!vars) return fail(vars.error());
    job.request.vars = std::move(*vars);
    job.continuation.keeps_secrets = change.secrets.size() > secrets;
  }
  for (const std::string& id : plan.targets) {
    const fleet::Node before = record(id);
    job::NodeOutcome outcome;
    outcome.node = id;
    outcome.name = before.name;
    job.nodes.push_back(std::move(outcome));
    const auto wanted = plan.changes.find(id);
    if (wanted == plan.changes.end() || !job::changes_spec(plan.kind))
      continue;  // looking changes nothing
    job.undo[id] = plan::wish_of(before);
    if (wanted->second.labels) job.undo[id].labels = before.spec.labels;
    if (wanted->second.vars) job.undo[id].vars = before.spec.vars;
    fleet::Node after = before;
    fleet::NodeSpec spec = before.spec;
    set_wish(spec, wanted->second);
    if (fleet::set_spec(after, std::move(spec))) change.nodes[id] = std::move(after);
  }
  if (origin.continues) take_over(job, origin, change);
  change.jobs[job.id] = job;
  change.events.push_back({0, {}, "job.queued", "", job.id, job.title});
  return job;
}

Result<job::Job> Controller::accept(const plan::Request& request, const plan::Plan& plan,
                                    const Origin& origin) {
  Change change;
  change.by = origin.initiator;
  change.what = plan.title;
  auto job = draft(request, plan, origin, change);
  if (!job) return job;
  remember(origin.key, origin.digest, job->id, change);
  if (auto done = commit(std::move(change)); !done) return fail(done.error());
  return job;
}

// A job that ends without having started: its nodes get back what the acceptance changed.
void Controller::end_unstarted(job::Job& job, job::State final_state, Change& change) {
  job.state = final_state;
  job.ended = deps_.clock.now();
  for (job::NodeOutcome& n : job.nodes) n.state = job::OutcomeState::kUntouched;
  for (job::StageStatus& s : job.stages) s.state = job::StageState::kSkipped;
  const auto now = state();
  for (const auto& [id, undo] : job.undo) take_back_wish(*now, job, id, change);
  change.events.push_back({0, {}, "job.ended", "", job.id, job.error});
}

}  // namespace clusterctl::controller
