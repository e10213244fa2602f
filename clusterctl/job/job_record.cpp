// The full record of a job, as the store keeps it. Reading is strict: a record that does not decode
// is damage, not a default.
#include <array>

#include "base/time.h"
#include "job/job_json.h"

namespace clusterctl::job {
namespace {

template <typename Enum>
Enum from_word(const std::string& word, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_word(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("unknown word " + word);
}

constexpr std::array<std::string_view, 3> kAvailabilityWords{"active", "pause", "drain"};

fleet::Availability availability_from(const std::string& word) {
  for (size_t i = 0; i < kAvailabilityWords.size(); ++i) {
    if (kAvailabilityWords[i] == word) return static_cast<fleet::Availability>(i);
  }
  throw std::invalid_argument("unknown availability " + word);
}

Json time_number(const std::optional<Time>& t) {
  return t ? Json(t->time_since_epoch().count()) : Json();
}
std::optional<Time> time_from(const Json& j) {
  if (j.is_null()) return std::nullopt;
  return Time(std::chrono::milliseconds(j.get<int64_t>()));
}

Json problem_rows(const std::vector<Problem>& problems) {
  Json out = Json::array();
  for (const Problem& p : problems) out.push_back({p.code, p.message, p.hint, p.node});
  return out;
}

std::vector<Problem> problems_from(const Json& j) {
  std::vector<Problem> out;
  for (const Json& p : j) out.push_back({p.at(0), p.at(1), p.at(2), p.at(3)});
  return out;
}

Json changes_json(const std::map<std::string, plan::SpecChange>& changes) {
  Json out = Json::object();
  for (const auto& [id, c] : changes) {
    out[id] = {c.host_group, c.capabilities,
               kAvailabilityWords[static_cast<size_t>(c.availability)]};
    if (!c.labels && !c.vars) continue;
    out[id].push_back(c.labels ? Json(*c.labels) : Json());
    out[id].push_back(c.vars ? *c.vars : Json());
  }
  return out;
}

std::map<std::string, plan::SpecChange> changes_from(const Json& j) {
  std::map<std::string, plan::SpecChange> out;
  for (const auto& [id, c] : j.items()) {
    plan::SpecChange& change = out[id];
    change.host_group = c.at(0);
    change.capabilities = c.at(1).get<std::vector<std::string>>();
    change.availability = availability_from(c.at(2));
    if (c.size() < 5) continue;
    if (!c.at(3).is_null()) change.labels = c.at(3).get<std::map<std::string, std::string>>();
    if (!c.at(4).is_null()) change.vars = c.at(4);
  }
  return out;
}

// Nodes of one group have the same services: kept once per distinct list, so that large jobs stay
// small.
Json services_json(const std::map<std::string, std::vector<std::string>>& services) {
  std::map<std::vector<std::string>, std::vector<std::string>> groups;
  for (const auto& [id, list] : services) groups[list].push_back(id);
  Json out = Json::array();
  for (const auto& [list, ids] : groups) out.push_back({list, ids});
  return out;
}

Json vars_json(const plan::RunVars& v) {
  Json lost = Json::array();
  for (const plan::Lost& l : v.lost)
    lost.push_back({{"name", l.name}, {"addr", l.addr}, {"ids", l.ids}});
  return {{"initiator", v.initiator},
          {"peer", v.peer},
          {"managers", v.managers},
          {"endpoint", v.endpoint},
          {"lost", lost},
          {"leaving", v.leaving},
          {"level", v.cleanup_level},
          {"only", v.only_services},
          {"drain_deadline", v.drain_deadline ? Json(*v.drain_deadline) : Json()}};
}

plan::RunVars vars_from(const Json& j) {
  plan::RunVars v;
  v.initiator = j.at("initiator");
  v.peer = j.at("peer");
  v.managers = j.at("managers");
  v.endpoint = j.at("endpoint");
  v.leaving = j.at("leaving");
  v.cleanup_level = j.at("level");
  v.only_services = j.at("only");
  if (const Json deadline = j.value("drain_deadline", Json()); !deadline.is_null())
    v.drain_deadline = deadline.get<int>();
  for (const Json& l : j.at("lost")) v.lost.push_back({l.at("name"), l.at("addr"), l.at("ids")});
  return v;
}

Json availability_json(const std::map<std::string, fleet::Availability>& wanted) {
  Json out = Json::object();
  for (const auto& [id, a] : wanted) out[id] = kAvailabilityWords[static_cast<size_t>(a)];
  return out;
}

Json def_json(const plan::Stage& s) {
  return {{"name", s.name},
          {"playbook", s.playbook},
          {"nodes", s.nodes},
          {"peers", s.peers},
          {"one_by_one", s.one_by_one},
          {"availability", availability_json(s.availability)},
          {"in_service", s.in_service ? Json(*s.in_service) : Json()},
          {"restores", s.restores},
          {"batch", s.batch},
          {"as_before", s.as_before},
          {"about", s.about},
          {"services", services_json(s.services)},
          {"vars", vars_json(s.vars)}};
}

plan::Stage def_from(const Json& j) {
  plan::Stage s;
  s.name = j.at("name");
  s.playbook = j.at("playbook");
  s.nodes = j.at("nodes");
  s.peers = j.at("peers");
  s.one_by_one = j.at("one_by_one");
  s.vars = vars_from(j.at("vars"));
  // Records of earlier versions have none of these.
  s.restores = j.value("restores", false);
  if (const Json side = j.value("in_service", Json()); !side.is_null())
    s.in_service = side.get<bool>();
  s.batch = j.value("batch", 0);
  s.as_before = j.value("as_before", false);
  s.about = j.value("about", std::vector<std::string>());
  const Json availability = j.value("availability", Json::object());
  for (const auto& [id, word] : availability.items()) s.availability[id] = availability_from(word);
  for (const Json& group : j.at("services")) {
    for (const std::string id : group.at(1))
      s.services[id] = group.at(0).get<std::vector<std::string>>();
  }
  return s;
}

Json stage_json(const StageStatus& s) {
  return {
      {"def", def_json(s.def)},        {"run", s.run},         {"nodes", s.nodes},
      {"state", to_word(s.state)},     {"closing", s.closing}, {"started", time_number(s.started)},
      {"ended", time_number(s.ended)}, {"fences", s.fences}};
}

StageStatus stage_from(const Json& j) {
  StageStatus s;
  s.def = def_from(j.at("def"));
  s.run = j.at("run");
  s.nodes = j.at("nodes").get<std::vector<std::string>>();
  s.state = from_word(j.at("state"), StageState::kSkipped);
  s.closing = j.at("closing");
  s.started = time_from(j.at("started"));
  s.ended = time_from(j.at("ended"));
  s.fences = j.value("fences", std::vector<std::string>());
  return s;
}

Json outcome_json(const NodeOutcome& n) {
  return {{"node", n.node},
          {"name", n.name},
          {"state", to_word(n.state)},
          {"touched", n.touched},
          {"begun", n.begun},
          {"was_out", n.was_out},
          {"generation", n.generation},
          {"stage", n.stage},
          {"service", n.service},
          {"task", n.task},
          {"message", n.message},
          {"hint", n.hint},
          {"code", n.code},
          {"cleanup", n.cleanup}};
}

NodeOutcome outcome_from(const Json& j) {
  NodeOutcome n;
  n.node = j.at("node");
  n.name = j.at("name");
  n.state = from_word(j.at("state"), OutcomeState::kUntouched);
  n.touched = j.at("touched");
  n.begun = j.value("begun", false);
  n.was_out = j.value("was_out", false);
  n.generation = j.value("generation", uint64_t{0});
  n.stage = j.at("stage");
  n.service = j.at("service");
  n.task = j.at("task");
  n.message = j.at("message");
  n.hint = j.at("hint");
  n.cleanup = j.at("cleanup");
  n.code = j.value("code", "");  // absent in records of the first version
  return n;
}

Json control_json(const Job& job) {
  const Continuation& c = job.continuation;
  return {{"pause",
           {{"requested", job.pause.requested},
            {"since", time_number(job.pause.since)},
            {"sum", job.pause.sum.count()}}},
          {"overrun",
           {{"reason", job.overrun.reason},
            {"error", job.overrun.error},
            {"at", time_number(job.overrun.at)}}},
          {"continuation",
           {{"continues", c.continues},
            {"continued_by", c.continued_by},
            {"order", c.order},
            {"passed", c.passed},
            {"keeps_secrets", c.keeps_secrets},
            {"secrets_gone", c.secrets_gone}}}};
}

void control_from(const Json& j, Job& job) {
  const Json& pause = j.at("pause");
  job.pause.requested = pause.at("requested");
  job.pause.since = time_from(pause.at("since"));
  job.pause.sum = std::chrono::milliseconds(pause.at("sum").get<int64_t>());
  const Json& overrun = j.at("overrun");
  job.overrun = {overrun.at("reason"), overrun.at("error"), time_from(overrun.at("at"))};
  const Json& c = j.at("continuation");
  job.continuation = {c.at("continues"),     c.at("continued_by"), c.at("passed"),
                      c.at("keeps_secrets"), c.at("secrets_gone"), c.value("order", "")};
}

Json ledger_json(const std::vector<UndoEntry>& ledger) {
  Json out = Json::array();
  for (const UndoEntry& e : ledger) out.push_back({e.node, e.what, e.from, e.to, to_word(e.state)});
  return out;
}

std::vector<UndoEntry> ledger_from(const Json& j) {
  std::vector<UndoEntry> out;
  for (const Json& e : j)
    out.push_back({e.at(0), e.at(1), e.at(2), e.at(3), from_word(e.at(4), UndoState::kFailed)});
  return out;
}

Job decode(const Json& j) {
  Job job;
  job.id = j.at("id");
  job.kind = j.at("kind");
  job.title = j.at("title");
  job.initiator = j.at("initiator");
  job.state = from_word(j.at("state"), State::kInterrupted);
  job.cancel_requested = j.at("cancel");
  job.cancel_now = j.at("cancel_now");
  if (j.contains("control")) control_from(j.at("control"), job);  // older records have none
  if (const auto chain = j.find("chain"); chain != j.end())
    job.chain = {chain->at("plan"), chain->at("after"), chain->at("removes")};
  job.reason = j.at("reason");
  job.error = j.at("error");
  job.hint = j.at("hint");
  if (auto request = plan::parse_request(j.at("request"))) job.request = *request;
  for (const Json& s : j.at("stages")) job.stages.push_back(stage_from(s));
  for (const Json& n : j.at("nodes")) job.nodes.push_back(outcome_from(n));
  for (const std::string id : j.at("managers")) job.roles[id] = fleet::Role::kManager;
  for (const NodeOutcome& n : job.nodes) job.roles.emplace(n.node, fleet::Role::kWorker);
  job.changes = changes_from(j.at("changes"));
  job.undo = changes_from(j.at("undo"));
  job.ledger = ledger_from(j.value("ledger", Json::array()));
  job.rendered = j.value("rendered", std::map<std::string, std::string>());
  if (!j.at("cleanup").is_null()) job.cleanup = def_from(j.at("cleanup"));
  const Json put_back = j.value("put_back", Json::object());
  for (const auto& [id, stages] : put_back.items()) {
    for (const Json& s : stages) job.put_back[id].push_back(def_from(s));
  }
  job.parts = j.value("parts", std::map<std::string, std::string>());
  job.problems = problems_from(j.at("problems"));
  job.warnings = problems_from(j.at("warnings"));
  job.created = time_from(j.at("created")).value_or(Time{});
  job.started = time_from(j.at("started"));
  job.ended = time_from(j.at("ended"));
  job.resource_version = j.at("resource_version");
  return job;
}

}  // namespace

Json to_record(const Job& job) {
  Json j{{"v", 1},
         {"id", job.id},
         {"kind", job.kind},
         {"title", job.title},
         {"initiator", job.initiator},
         {"state", to_word(job.state)},
         {"cancel", job.cancel_requested},
         {"cancel_now", job.cancel_now},
         {"control", control_json(job)},
         {"reason", job.reason},
         {"error", job.error},
         {"hint", job.hint},
         {"request", plan::to_json(job.request)},
         {"changes", changes_json(job.changes)},
         {"undo", changes_json(job.undo)},
         {"ledger", ledger_json(job.ledger)},
         {"rendered", job.rendered},
         {"cleanup", job.cleanup ? def_json(*job.cleanup) : Json()},
         {"problems", problem_rows(job.problems)},
         {"warnings", problem_rows(job.warnings)},
         {"created", time_number(job.created)},
         {"started", time_number(job.started)},
         {"ended", time_number(job.ended)},
         {"resource_version", job.resource_version}};
  if (!job.chain.plan.empty())
    j["chain"] = {
        {"plan", job.chain.plan}, {"after", job.chain.after}, {"removes", job.chain.removes}};
  if (!job.parts.empty()) j["parts"] = job.parts;
  for (const auto& [id, stages] : job.put_back) {
    for (const plan::Stage& s : stages) j["put_back"][id].push_back(def_json(s));
  }
  j["stages"] = j["nodes"] = j["managers"] = Json::array();
  for (const StageStatus& s : job.stages) j["stages"].push_back(stage_json(s));
  for (const NodeOutcome& n : job.nodes) j["nodes"].push_back(outcome_json(n));
  for (const auto& [id, role] : job.roles) {
    if (role == fleet::Role::kManager) j["managers"].push_back(id);
  }
  return j;
}

Result<Job> from_record(const Json& record) {
  try {
    return decode(record);
  } catch (const std::exception& e) {
    return fail(Code::kInternal, "damaged", std::string("a job record cannot be read: ") + e.what(),
                "restore the state directory from a backup");
  }
}

}  // namespace clusterctl::job
