#include "job/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/words.h"
#include "job/causes.h"

namespace clusterctl::job {
namespace {

constexpr std::string_view kServicePrefix = "clusterctl_service_";

class Evaluation {
 public:
  Evaluation(const StageStatus& stage, const fleet::Snapshot& fleet,
             const ansible::RunResult& result, Time now, const ansible::Hints* hints)
      : stage_(stage), fleet_(fleet), result_(result), now_(now), hints_(hints) {}

  StageOutcome run(const run::RunState& run, const std::string& output) {
    if (run.exit && run.exit->events_lost && !result_.complete()) {
      out_.state = StageState::kFailed;
      out_.error =
          "what the playbook did is not known: its events could not be stored, the disk was full";
      out_.hint = "free space in the state directory";
    } else if (run.phase == run::Phase::kInterrupted) {
      out_.state = StageState::kInterrupted;
      out_.error = "the run was interrupted: its processes ended without a result";
    } else if (result_.cancelled() || (run.exit && run.exit->cancelled)) {
      out_.state = StageState::kCancelled;
      out_.error = "cancelled";
    } else if (!result_.complete()) {
      out_.state = StageState::kFailed;
      broke_off(run, output, "ansible-playbook ended {} before its final statistics");
    }
    for (const std::string& id : stage_.nodes) target(id);
    for (const std::string& id : stage_.def.peers) peer(id);
    if (out_.state == StageState::kSucceeded && !out_.failures.empty())
      out_.state = StageState::kFailed;
    if (out_.state == StageState::kSucceeded && run.exit &&
        (run.exit->code != 0 || run.exit->signal != 0) && stage_.def.name != "observe") {
      out_.state = StageState::kFailed;
      broke_off(run, output, "ansible-playbook ended {} although no target failed");
    }
    return std::move(out_);
  }

 private:
  // The run as a whole ended badly: how, and the line of its output that says why.
  void broke_off(const run::RunState& run, const std::string& output, std::string_view what) {
    std::string how = "without an exit code";
    if (run.exit) {
      how = run.exit->signal ? fmt::format("by signal {}", run.exit->signal)
                             : fmt::format("with code {}", run.exit->code);
    }
    const auto evidence = ansible::output_evidence(output, run.exit ? run.exit->code : 0,
                                                   run.exit ? run.exit->signal : 0);
    const ansible::Explanation why = explain(evidence, "", "");
    const bool line = !evidence.message.empty() || !evidence.output.empty();
    out_.error = fmt::format(fmt::runtime(what), how) +
                 (line ? ": " + truncate_utf8(one_line(why.line), 1000) : "");
    out_.code = why.code;
    out_.hint = why.hint;
  }

  ansible::Explanation explain(const ansible::Evidence& evidence, const std::string& node,
                               const std::string& service) const {
    if (hints_) return hints_->explain(evidence, node, service);
    return {ansible::plain_line(evidence), "", ""};
  }

  Failure failure(const std::string& id, const ansible::Cause& cause) const {
    const bool there = !cause.delegate.empty();  // it is that host that needs a look
    const auto why = explain(cause.evidence, there ? cause.delegate : cause.host, cause.service);
    std::string message = why.line.empty() ? cause.message : why.line;
    if (message.empty()) message = "failed without a message";
    if (there) message = fmt::format("on {}: {}", cause.delegate, message);
    return {id,       cause.service, cause.task, truncate_utf8(one_line(message), 4000),
            why.hint, why.code};
  }

  std::string name_of(const std::string& id) const {
    const auto it = fleet_.nodes.find(id);
    return it == fleet_.nodes.end() ? "" : it->second.name;
  }

  const std::vector<std::string>& services_of(const std::string& id) const {
    static const std::vector<std::string> kNone;
    const auto it = stage_.def.services.find(id);
    return it == stage_.def.services.end() ? kNone : it->second;
  }

  void target(const std::string& id) {
    const std::string name = name_of(id);
    NodeChange change = observe(id, name);
    const auto cause = result_.cause(name);
    if (stage_.def.name == "check" && has_findings(name)) {
      require_no_problems(id, name);  // the task that fails for them says less
    } else if (cause) {
      out_.failures.push_back(failure(id, *cause));
    } else if (out_.state != StageState::kSucceeded) {
      out_.failures.push_back({id, "", "", out_.error, out_.hint, out_.code});
    } else if (!result_.in_stats(name)) {
      out_.failures.push_back({id, "", "", "the run has no result for this node"});
    } else if (!stage_.def.availability.empty()) {
      require_availability(id, name);
    } else if (stage_.def.name == "verify") {
      require_health(id, name, change);
    } else if (stage_.def.name == "check") {
      require_no_problems(id, name);
    }
    out_.observations.push_back(std::move(change));
  }

  void peer(const std::string& id) {
    const std::string name = name_of(id);
    if (!name.empty()) out_.observations.push_back(observe(id, name));
  }

  // Facts and presence of a host, whatever became of it.
  NodeChange observe(const std::string& id, const std::string& name) {
    NodeChange change;
    change.id = id;
    // Asked through a manager: it says nothing about whether the host itself answers.
    if (stage_.def.availability.count(id)) return change;
    const auto counts = result_.hosts().find(name);
    const auto cause = result_.cause(name);
    const auto answered = result_.answered(name);
    if ((cause && cause->unreachable) || answered == false) {
      // Who does not let us in is there; whether it is the node, nobody knows.
      const bool refused =
          cause && cause->unreachable &&
          answers_and_refuses(explain(cause->evidence, cause->host, cause->service).code);
      if (!refused) change.presence = fleet::Presence::kDisappeared;
    } else if (counts != result_.hosts().end() && counts->second.ok + counts->second.changed > 0) {
      change.presence = fleet::Presence::kDiscovered;
      change.last_seen = now_;
    }
    for (const std::string& service : services_of(id)) {
      const Json* fact = result_.fact(name, std::string(kServicePrefix) + service);
      if (!fact) continue;
      if (auto status = ansible::decode_service_fact(*fact, now_))
        change.services[service] = *status;
    }
    if (const Json* fact = result_.fact(name, "clusterctl_hardware")) {
      if (auto hardware = ansible::decode_hardware_fact(*fact)) change.hardware = *hardware;
    }
    return change;
  }

  void require_health(const std::string& id, const std::string& name, const NodeChange& change) {
    const auto& only = stage_.def.vars.only_services;
    for (const std::string& service : services_of(id)) {
      if (!only.empty() && std::find(only.begin(), only.end(), service) == only.end()) continue;
      const auto seen = change.services.find(service);
      if (seen == change.services.end()) {
        const Json* fact = result_.fact(name, std::string(kServicePrefix) + service);
        out_.failures.push_back(
            {id, service, "verify",
             fact ? "its verify fact has a wrong form" : "verify reported nothing"});
        return;
      }
      if (!seen->second.healthy) {
        out_.failures.push_back(unhealthy(id, name, service, seen->second.message));
        return;
      }
    }
  }

  // The service's own word has known causes as well.
  Failure unhealthy(const std::string& id, const std::string& name, const std::string& service,
                    const std::string& message) const {
    ansible::Evidence evidence;
    evidence.message = ansible::evidence_lines(message);
    const auto why = explain(evidence, name, service);
    return {id, service, "verify", message, why.hint, why.code};
  }

  bool has_findings(const std::string& name) const {
    const Json* fact = result_.fact(name, "clusterctl_problems");
    return fact && fact->is_array() && !fact->empty();
  }

  void require_availability(const std::string& id, const std::string& name) {
    const std::string_view wanted = fleet::word(stage_.def.availability.at(id));
    const Json* fact = result_.fact(name, "clusterctl_scheduling");
    const std::string found =
        fact && fact->is_object() ? get_string(*fact, "availability").value_or("") : "";
    if (found == wanted) return;
    out_.failures.push_back(
        {id, "", "availability",
         found.empty() ? "the scheduler's availability was not reported"
                       : fmt::format("the scheduler says {}, not {}", one_line(found), wanted)});
  }

  void require_no_problems(const std::string& id, const std::string& name) {
    const Json* fact = result_.fact(name, "clusterctl_problems");
    if (!fact || !fact->is_array()) {
      out_.failures.push_back({id, "", "check", "check reported nothing"});
      return;
    }
    for (const Json& item : *fact) {
      Problem p;
      p.code = get_string(item, "code").value_or("problem");
      p.message = one_line(get_string(item, "message").value_or("a problem without a message"));
      p.hint = one_line(get_string(item, "hint").value_or(""));
      p.node = name;
      if (out_.problems.empty() || out_.problems.back().node != name) {
        out_.failures.push_back(
            {id, get_string(item, "service").value_or(""), "check", p.message, p.hint, p.code});
      }
      out_.problems.push_back(std::move(p));
    }
  }

  const StageStatus& stage_;
  const fleet::Snapshot& fleet_;
  const ansible::RunResult& result_;
  Time now_;
  const ansible::Hints* hints_;
  StageOutcome out_;
};

}  // namespace

StageOutcome evaluate(const StageStatus& stage, const fleet::Snapshot& fleet,
                      const ansible::RunResult& result, const run::RunState& run,
                      const std::string& output, Time now, const ansible::Hints* hints) {
  return Evaluation(stage, fleet, result, now, hints).run(run, output);
}

}  // namespace clusterctl::job
