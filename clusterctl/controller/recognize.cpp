// Which machine is which, as far as the controller is concerned: facts of runs, reports of
// monitors, words of the operator. The rules are in fleet/recognize.h; here they meet the store.
#include "fleet/recognize.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "controller/controller.h"
#include "fleet/evidence.h"
#include "fleet/patterns.h"
#include "fleet/problems.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kMaxMachines = 1000;

// One entry of "nodes" of an event.
fleet::Sighting parse_machine(const Json& machine, const std::string& place,
                              fleet::Problems& problems) {
  fleet::Sighting out;
  problems.take(check_keys(machine, {"name", "addr", "serial", "uuid", "macs", "host_key"}, place));
  out.name = fleet::normal_label(problems.take(get_string(machine, "name")));
  out.addr = problems.take(get_string(machine, "addr"));
  std::string host_key;
  const std::string key = problems.take(get_string(machine, "host_key"));
  if (!key.empty()) host_key = problems.take(fleet::check_host_key(key));
  problems.take(fleet::check_name(out.name));
  if (!out.addr.empty()) problems.take(fleet::check_addr(out.addr, place + ".addr"));
  out.identity = fleet::parse_evidence(machine, place, problems);
  out.identity.host_key = std::move(host_key);
  return out;
}

std::string host_name(const fleet::Node& node) {
  return node.status.hardware ? node.status.hardware->host_name : "";
}

}  // namespace

void Controller::recognize(const State& now, const job::Proposal& proposal, Change& change) const {
  std::set<std::string> reported;
  for (const job::NodeChange& c : proposal.nodes) {
    if (c.hardware && change.nodes.count(c.id)) reported.insert(c.id);
  }
  if (reported.empty()) return;
  fleet::Snapshot fleet = *now.fleet;
  for (const auto& [id, node] : change.nodes) fleet.nodes[id] = node;
  std::set<std::string> changed;
  for (const std::string& id : reported) {
    fleet::recognize_facts(fleet, id, proposal.job.id, deps_.clock.now(), changed);
    const std::string was = host_name(now.fleet->nodes.at(id)), is = host_name(fleet.nodes.at(id));
    if (was.empty() || was == is) continue;
    change.events.push_back(
        {0,
         {},
         "node.identity",
         fleet.nodes.at(id).name,
         proposal.job.id,
         fmt::format("calls itself {} now, it was {}", fleet::shown(is), fleet::shown(was))});
  }
  fleet::settle_conflicts(fleet, reported, deps_.clock.now(), changed);
  for (const std::string& id : changed) change.nodes[id] = fleet.nodes.at(id);
}

Result<Report> Controller::parse_report(const Json& body) const {
  fleet::Problems problems;
  problems.take(check_keys(body, {"name", "nodes"}, "the event"));
  const std::string name = problems.take(get_string(body, "name"));
  if (name != "discovered" && name != "disappeared") {
    problems.add(Code::kInvalid,
                 Problem{"unknown_event", fmt::format("there is no event {}", fleet::shown(name)),
                         "one of: discovered, disappeared", ""});
  }
  Report report;
  report.discovered = name == "discovered";
  const auto nodes = body.find("nodes");
  if (nodes == body.end() || !nodes->is_array() || nodes->empty() || nodes->size() > kMaxMachines) {
    problems.add(
        Code::kInvalid,
        Problem{"bad_nodes", fmt::format("nodes must be a list of 1 to {} machines", kMaxMachines),
                "", ""});
    return problems.refuse("nothing is recorded");
  }
  for (size_t i = 0; i < nodes->size(); ++i) {
    const std::string place = fmt::format("nodes[{}]", i);
    if (!(*nodes)[i].is_object()) {
      problems.add(Code::kInvalid, Problem{"wrong_type", place + " must be an object", "", ""});
      continue;
    }
    report.machines.push_back(parse_machine((*nodes)[i], place, problems));
    const fleet::Sighting& s = report.machines.back();
    if (report.discovered && s.addr.empty()) {
      problems.add(Code::kInvalid, Problem{"no_addr", place + ".addr is missing",
                                           "where is it to be reached?", ""});
    }
    if (deps_.catalog.host_group(s.name)) {
      problems.add(
          Code::kInvalid,
          Problem{"reserved_name", fmt::format("\"{}\" is the name of a host group", s.name),
                  "rename the machine", ""});
    }
  }
  if (!problems.empty()) return problems.refuse("nothing is recorded");
  return report;
}

Result<std::vector<Seen>> Controller::monitor_event(const Json& body) {
  auto report = parse_report(body);
  if (!report) return fail(report.error());
  reports_.bring(&*report);
  MutexLock lock(mutex_);
  if (!report->over) {
    // Nobody has worked it off: everything that waits goes into one commit.
    const std::vector<Report*> all = reports_.take();
    Change change;
    change.what = "reported by a monitor";
    fleet::Snapshot fleet = *state()->fleet;
    for (Report* r : all) work_off(*r, fleet, change);
    const Status done = commit(std::move(change));
    for (Report* r : all) {
      r->done = done;
      r->over = true;
    }
  }
  if (!report->done) return fail(report->done.error());
  return std::move(report->seen);
}

}  // namespace clusterctl::controller
