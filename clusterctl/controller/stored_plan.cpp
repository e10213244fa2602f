#include "controller/stored_plan.h"

#include <fmt/format.h>

#include "base/time.h"

namespace clusterctl::controller {
namespace {

constexpr size_t kPartBytes = 128 << 10;

using plan::Reading;

constexpr std::pair<Reading, const char*> kReadings[] = {
    {Reading::kDocument, "document"}, {Reading::kChanges, "changes"}, {Reading::kWhole, "whole"}};

Json wanted_json(const plan::Wanted& w) {
  Json out{{"secrets", w.secrets},
           {"remove", w.remove},
           {"prune", w.prune},
           {"work", w.work},
           {"options", w.options}};
  out["globals"] = w.globals.value_or(Json());
  for (const auto& [reading, name] : kReadings) {
    if (w.reading == reading) out["reading"] = name;
  }
  return out;
}

plan::Wanted wanted_from(const Json& j) {
  plan::Wanted w;
  w.secrets = j.at("secrets").get<std::set<std::string>>();
  w.remove = j.at("remove").get<std::vector<std::string>>();
  w.prune = j.at("prune");
  w.work = j.at("work");
  w.options = j.at("options");
  if (!j.at("globals").is_null()) w.globals = j.at("globals");
  for (const auto& [reading, name] : kReadings) {
    if (j.at("reading") == name) w.reading = reading;
  }
  return w;
}

StoredPlan decode(const std::vector<Json>& records) {
  const Json& j = records.at(0);
  StoredPlan p;
  p.id = j.at("id");
  p.initiator = j.at("initiator");
  p.title = j.at("title");
  p.created = parse_time(j.at("created").get<std::string>()).value_or(Time{});
  p.job = j.at("job");
  if (!j.at("wanted").is_null()) p.wanted = wanted_from(j.at("wanted"));
  for (const Json& e : j.at("pins")) p.pins[e.at(0)] = {e.at(1), e.at(2), e.at(3)};
  p.globals = j.at("globals");
  p.new_ids = j.at("new_ids").get<std::map<std::string, std::string>>();
  p.secrets = j.at("secrets").get<std::map<std::string, std::string>>();
  if (!j.at("applied").is_null())
    p.applied = parse_time(j.at("applied").get<std::string>()).value_or(Time{});
  p.jobs = j.at("jobs").get<std::vector<std::string>>();
  for (size_t i = 1; i < records.size(); ++i) {
    for (const Json& e : records[i].at("nodes"))
      p.wanted->nodes.push_back({e.at(0), e.at(1), e.at(2).get<std::set<std::string>>()});
  }
  return p;
}

}  // namespace

std::vector<Json> to_records(const StoredPlan& p) {
  Json pins = Json::array();
  for (const auto& [name, pin] : p.pins)
    pins.push_back(Json::array({name, pin.id, pin.generation, pin.lifecycle}));
  Json head{{"v", 1},
            {"id", p.id},
            {"initiator", p.initiator},
            {"title", p.title},
            {"created", format_time(p.created)},
            {"wanted", p.wanted ? wanted_json(*p.wanted) : Json()},
            {"job", p.job},
            {"pins", std::move(pins)},
            {"globals", p.globals},
            {"new_ids", p.new_ids},
            {"secrets", p.secrets},
            {"applied", p.applied ? Json(format_time(*p.applied)) : Json()},
            {"jobs", p.jobs}};
  std::vector<Json> out;
  out.push_back(std::move(head));
  if (!p.wanted) return out;
  size_t bytes = kPartBytes;
  for (const plan::WantedNode& node : p.wanted->nodes) {
    Json entry = Json::array({node.name, node.spec, node.secrets});
    const size_t size = dump_json(entry).size();
    if (bytes + size > kPartBytes) {
      Json part{{"v", 1}, {"nodes", Json::array()}};
      out.push_back(std::move(part));
      bytes = 0;
    }
    bytes += size;
    out.back()["nodes"].push_back(std::move(entry));
  }
  return out;
}

Result<StoredPlan> plan_from_records(const std::vector<Json>& records) {
  try {
    return decode(records);
  } catch (const std::exception& e) {
    return fail(Code::kInternal, "damaged", std::string("a plan cannot be read: ") + e.what(),
                "restore the state directory from a backup");
  }
}

}  // namespace clusterctl::controller
