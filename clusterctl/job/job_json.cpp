#include "job/job_json.h"

#include "base/time.h"
#include "base/time_json.h"
#include "job/causes.h"
#include "job/continue.h"

namespace clusterctl::job {
namespace {

std::string name_of(const std::string& id, const Job& job, const fleet::Snapshot& fleet) {
  if (const NodeOutcome* outcome = job.outcome(id)) return outcome->name;
  const auto it = fleet.nodes.find(id);
  return it == fleet.nodes.end() ? id : it->second.name;
}

Json problem_json(const Problem& p) {
  return {{"code", p.code}, {"message", p.message}, {"hint", p.hint}, {"node", p.node}};
}

Json problems_json(const std::vector<Problem>& problems) {
  Json out = Json::array();
  for (const Problem& p : problems) out.push_back(problem_json(p));
  return out;
}

Json causes_json(const Job& job, const fleet::Snapshot& fleet) {
  Json out = Json::array();
  for (const CauseGroup& g : group_causes(job, &fleet)) {
    out.push_back({{"line", g.line},
                   {"count", g.nodes.size()},
                   {"nodes", g.nodes},
                   {"code", g.code},
                   {"hint", g.hint}});
  }
  return out;
}

Json stage_view(const StageStatus& stage, const Job& job, const fleet::Snapshot& fleet) {
  Json nodes = Json::array();
  for (const std::string& id : stage.run.empty() ? stage.def.nodes : stage.nodes) {
    nodes.push_back(name_of(id, job, fleet));
  }
  return {{"batch", stage.def.batch},
          {"name", stage.def.name},
          {"run", stage.run},
          {"playbook", stage.def.playbook},
          {"state", to_word(stage.state)},
          {"nodes", nodes},
          {"started", time_or_null(stage.started)},
          {"ended", time_or_null(stage.ended)}};
}

}  // namespace

Json to_json(const Job& job, const fleet::Snapshot& fleet, const std::optional<Conflict>& waiting) {
  Json out{{"id", job.id},
           {"kind", job.kind},
           {"title", job.title},
           {"initiator", job.initiator},
           {"state", to_word(job.state)},
           {"cancel_requested", job.cancel_requested},
           {"pause_requested", job.pause.requested},
           {"paused", time_or_null(job.pause.since)},
           {"continues", job.continuation.continues},
           {"continued_by", job.continuation.continued_by},
           {"resumable", continuable(job)},
           {"resumable_until", time_or_null(continuable_until(job))},
           {"reason", job.reason},
           {"error", job.error},
           {"hint", job.hint},
           {"request", plan::to_json(job.request)},
           {"created", format_time(job.created)},
           {"started", time_or_null(job.started)},
           {"ended", time_or_null(job.ended)},
           {"resource_version", job.resource_version},
           {"problems", problems_json(job.problems)},
           {"warnings", problems_json(job.warnings)}};
  out["stages"] = Json::array();
  for (const StageStatus& stage : job.stages)
    out["stages"].push_back(stage_view(stage, job, fleet));
  out["nodes"] = Json::array();
  for (const NodeOutcome& n : job.nodes) {
    out["nodes"].push_back({{"node", n.node},
                            {"name", n.name},
                            {"state", to_word(n.state)},
                            {"stage", n.stage},
                            {"service", n.service},
                            {"task", n.task},
                            {"message", n.message},
                            {"hint", n.hint},
                            {"code", n.code},
                            {"cleanup", n.cleanup}});
  }
  out["causes"] = causes_json(job, fleet);
  out["undo"] = Json::array();
  for (const UndoEntry& e : job.ledger) {
    out["undo"].push_back({{"node", name_of(e.node, job, fleet)},
                           {"what", e.what},
                           {"from", e.from},
                           {"to", e.to},
                           {"state", to_word(e.state)}});
  }
  if (waiting) {
    out["waiting"] = {{"job", waiting->job},
                      {"node", waiting->node.empty() ? "" : name_of(waiting->node, job, fleet)},
                      {"reason", waiting->reason},
                      {"since", format_time(job.pause.since.value_or(job.created))}};
  }
  return out;
}

}  // namespace clusterctl::job
