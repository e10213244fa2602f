// Going on with jobs that ended badly, and the secrets that are kept for that.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/log.h"
#include "controller/controller.h"
#include "plan/plan.h"

namespace clusterctl::controller {
namespace {

std::string scope_of(const job::Job& job) {
  return "job." + job.id + ".";
}

// The same variables with references to one job's secrets replaced by another's.
Json moved(const Json& vars, const std::string& from, const std::string& to) {
  const auto name = vars.is_object() && vars.size() == 1 ? get_string(vars, "secret").value_or("")
                                                         : std::string();
  if (name.starts_with(from)) return {{"secret", to + name.substr(from.size())}};
  Json out = vars;
  if (vars.is_structured()) {
    for (auto it = out.begin(); it != out.end(); ++it) *it = moved(*it, from, to);
  }
  return out;
}

tl::unexpected<Error> nothing_matches(const job::Job& job, const job::Selection& what) {
  std::map<std::string, int> counts;
  for (const job::NodeOutcome& n : job.nodes) ++counts[std::string(to_word(n.state))];
  std::string have;
  for (const auto& [word, n] : counts)
    have += fmt::format("{}{} {}", have.empty() ? "" : ", ", n, word);
  const std::string_view wanted = what.resume      ? "is left to do"
                                  : !what.failed   ? "was left untouched"
                                  : what.untouched ? "failed or was left untouched"
                                                   : "failed";
  return fail(Code::kConflict, "no_match",
              fmt::format("no node of job {} {}: {}", job.id, wanted, have),
              fmt::format("clusterctl job inspect {}", job.id));
}

}  // namespace

// The nodes must be as the job left them: in no other job, and for a resume, not worked on since.
Status Controller::check_free(const job::Job& old, const std::vector<std::string>& nodes,
                              bool resume) const {
  const auto now = state();
  for (const auto& [id, job] : now->jobs) {
    if (id == old.id) continue;
    const bool since = resume && !job::read_only(*job) && job->started && old.ended &&
                       std::tie(*job->started, id) > std::tie(*old.ended, old.id);
    if (job::is_final(job->state) && !since) continue;
    for (const std::string& node : nodes) {
      const job::NodeOutcome* n = job->outcome(node);
      if (!n) continue;
      if (!job::is_final(job->state)) {
        return fail(Code::kConflict, "busy",
                    fmt::format("node {} is in job {} ({}, {})", n->name, id, job->kind,
                                to_word(job->state)),
                    fmt::format("wait for it: clusterctl job wait {}", id));
      }
      return fail(Code::kConflict, "superseded",
                  fmt::format("node {} was in job {} ({}) since job {} ended", n->name, id,
                              job->kind, old.id),
                  "give the command anew, or clusterctl job retry");
    }
  }
  return {};
}

Result<Accepted> Controller::continue_job(std::string_view ref, const job::Selection& what,
                                          bool dry_run, const std::string& initiator,
                                          const std::string& key) {
  const std::string digest = request_digest(
      fmt::format("POST /v1/jobs/{}/{}", ref, what.resume ? "resume" : "retry"),
      {{"failed", what.failed}, {"untouched", what.untouched}, {"dry_run", dry_run}});
  MutexLock lock(mutex_);
  const auto made = made_by(key, digest);
  if (!made) return fail(made.error());
  if (*made) return made_job(**made);
  const auto found = find_job(ref);
  if (!found) return fail(found.error());
  const job::Job old = current((*found)->id).value_or(**found);
  if (auto ok = job::check_continuable(old); !ok) return fail(ok.error());
  const auto chosen = job::nodes_to_continue(old, what);
  if (chosen.empty() && !(old.nodes.empty() && what.resume)) return nothing_matches(old, what);
  std::vector<std::string> ids;
  plan::Request request = old.request;
  const bool pair = request.kind == "replace";  // it finds out itself which half is left
  if (!pair) request.nodes.clear();
  request.if_busy = "queue";
  std::string removed;  // since then
  for (const job::NodeOutcome* n : chosen) {
    if (!fleet()->nodes.count(n->node)) {
      removed += (removed.empty() ? "" : ", ") + n->name;
      continue;
    }
    ids.push_back(n->node);
    if (!pair) request.nodes.push_back(fleet()->nodes.at(n->node).name);
  }
  if (ids.empty() && !chosen.empty())
    return fail(Code::kConflict, "removed",
                fmt::format("what is left of job {} was removed since: {}", old.id, removed),
                "clusterctl node ls shows what is there");
  if (auto ok = check_free(old, ids, what.resume); !ok) return fail(ok.error());
  if (auto vars = resolve(request.vars); !vars) {
    return fail(Code::kConflict, "secrets_gone",
                fmt::format("a variable of job {} cannot be had any more: {}", old.id,
                            vars.error().message),
                "give the command again, with it");
  }
  const auto snapshot = fleet();
  auto plan = plan::make_plan(*snapshot, deps_.catalog, request);
  if (!plan) return fail(plan.error());
  Origin origin{initiator, key, digest};
  origin.continues = &old;
  origin.what = what;
  if (dry_run) return preview(*plan, origin);
  request = plan::pinned(request, *plan, *snapshot);
  auto job = accept(request, *plan, origin);
  if (!job) return fail(job.error());
  return Accepted{std::move(*job), {}, {}, false};
}

// The plan without what the nodes have behind them.
Accepted Controller::preview(plan::Plan plan, const Origin& origin) const {
  const auto snapshot = fleet();
  job::Job draft;
  draft.kind = plan.kind;
  draft.roles = plan.roles;
  for (const std::string& id : plan.targets) {
    job::NodeOutcome& outcome = draft.nodes.emplace_back();
    outcome.node = id;
    outcome.name = snapshot->nodes.at(id).name;
  }
  for (const plan::Stage& stage : plan.stages) draft.stages.emplace_back().def = stage;
  Change unused;
  take_over(draft, origin, unused);
  job::leave_out_passed(draft);
  plan.stages.clear();
  for (const job::StageStatus& stage : draft.stages) {
    if (!is_final(stage.state)) plan.stages.push_back(stage.def);
  }
  Accepted out{std::nullopt, plan::to_json(plan, *snapshot), {}, false};
  for (const job::NodeOutcome& n : draft.nodes) out.nodes.push_back(n.name);
  return out;
}

// What a new job takes from the one it continues: its secrets, and for a resume how far each node
// had come.
void Controller::take_over(job::Job& job, const Origin& origin, Change& change) const {
  job::Job old = *origin.continues;
  job.continuation.continues = old.id;
  // A retry does everything anew; what goes on does nothing twice.
  if (origin.what.resume)
    job.continuation.order = old.continuation.order.empty() ? old.id : old.continuation.order;
  job.continuation.keeps_secrets = old.continuation.keeps_secrets;
  const auto now = state();
  for (const std::string& name : secret_references(old.request.vars)) {
    if (!name.starts_with(scope_of(old))) continue;
    change.secrets[scope_of(job) + name.substr(scope_of(old).size())] = now->secrets.at(name);
  }
  job.request.vars = moved(old.request.vars, scope_of(old), scope_of(job));
  job.rendered = old.rendered;
  if (origin.what.resume) {
    for (job::NodeOutcome& n : job.nodes) {
      const job::NodeOutcome* before = old.outcome(n.node);
      if (!before) continue;
      // Changed by somebody since: what it has behind it was done to another machine or for
      // another purpose.
      const auto node = now->fleet->nodes.find(n.node);
      const bool changed = node == now->fleet->nodes.end() || before->generation == 0 ||
                           node->second.generation != before->generation;
      const auto passed = changed ? std::set<std::string>() : job::passed_stages(old, *before);
      if (!passed.empty()) job.continuation.passed[n.node] = {passed.begin(), passed.end()};
      n.touched = before->touched && (before->cleanup.empty() || before->cleanup == "kept");
    }
  }
  old.continuation.continued_by = job.id;
  ++old.resource_version;
  forget_job_secrets(old, change);
  change.jobs[old.id] = std::move(old);
}

void Controller::forget_job_secrets(job::Job& job, Change& change) {
  for (const std::string& name : secret_references(job.request.vars)) {
    if (name.starts_with(scope_of(job))) change.secrets[name] = std::nullopt;
  }
  job.continuation.keeps_secrets = false;
}

void Controller::expire_secrets() {
  const auto now = state();
  for (const auto& [id, stored] : now->jobs) {
    const auto until = job::continuable_until(*stored);
    if (!until || deps_.clock.now() < *until) continue;
    job::Job job = *stored;
    Change change;
    forget_job_secrets(job, change);
    job.continuation.secrets_gone = true;
    ++job.resource_version;
    change.jobs[id] = std::move(job);
    if (auto done = commit(std::move(change)); !done)
      log::warn("secrets of job {} cannot be removed: {}", id, done.error().line());
  }
}

}  // namespace clusterctl::controller
