// docs/quorum.md is written by this test: what the planner says for 1, 2, 3 and 5 managers of which
// 0, 1 or 2 do not answer, every verb. It fails when the file differs;
// CLUSTERCTL_GENERATE=1 plan_test --gtest_filter='QuorumTable.*' writes it anew. What is allowed is
// reckoned here once more, from the rules as they are written down.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

struct Size {
  int total, dead;
};
const std::vector<Size> kSizes{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {3, 0},
                               {3, 1}, {3, 2}, {5, 0}, {5, 1}, {5, 2}};

std::string manager(int i) {
  return "m" + std::to_string(i);
}
// The first managers answer, the last ones do not.
fleet::FleetBuilder fleet_of(Size size) {
  fleet::FleetBuilder fleet;
  std::vector<std::string> down;
  for (int i = 1; i <= size.total; ++i) {
    fleet.manager(manager(i));
    if (i > size.total - size.dead) down.push_back(manager(i));
  }
  fleet.report(down);
  for (const std::string& name : down) fleet[name].status.presence = fleet::Presence::kDisappeared;
  fleet.worker("w1");
  fleet.worker("w2");
  fleet.add("n1");
  fleet.snapshot().globals = {{"service_vip", "10.0.0.200"}};
  return fleet;
}

int q(int total) {
  return total / 2 + 1;
}

// By the rules: T members, H of them answer.
using Rule = std::function<bool(int t, int h)>;
struct Verb {
  std::string what;
  Json request;        // "LIVE", "DEAD", "ALL" stand for names
  std::string option;  // its way on the command line, for the reader
  Rule allowed = {};   // empty: not a matter of the number of members
};

// One member is away for a while and comes back.
const Rule kStays = [](int t, int h) { return t > 2 && h - 1 >= q(t); };
const Rule kStaysOrStops = [](int t, int h) { return t <= 2 || h - 1 >= q(t); };

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs{
      {"commission a further manager",
       {{"kind", "commission"}, {"nodes", {"n1"}}, {"host_group", "service-master"}},
       "",
       [](int t, int h) { return h >= q(t) && h == t; }},
      {"the same",
       {{"kind", "commission"},
        {"nodes", {"n1"}},
        {"host_group", "service-master"},
        {"force", true}},
       "--force",
       [](int t, int h) { return h >= q(t); }},
      {"commission a worker",
       {{"kind", "commission"}, {"nodes", {"n1"}}, {"host_group", "service-worker"}},
       "",
       {}},
      {"decommission a manager that answers",
       {{"kind", "decommission"}, {"nodes", {"LIVE"}}},
       "",
       [](int t, int h) { return t > 1 && h >= q(t) && h - 1 >= q(t - 1); }},
      {"the same",
       {{"kind", "decommission"}, {"nodes", {"LIVE"}}, {"force", true}},
       "--force",
       [](int t, int h) { return t == 1 || (h >= q(t) && h - 1 >= q(t - 1)); }},
      {"decommission a dead manager",
       {{"kind", "decommission"}, {"nodes", {"DEAD"}}},
       "",
       [](int, int) { return false; }},
      {"the same",
       {{"kind", "decommission"}, {"nodes", {"DEAD"}}, {"force", true}, {"powered_off", true}},
       "--force --i-have-powered-it-off",
       [](int t, int h) { return t == 1 || h >= q(t); }},
      {"decommission a worker", {{"kind", "decommission"}, {"nodes", {"w1"}}}, "", {}},
      {"update a manager that answers", {{"kind", "update"}, {"nodes", {"LIVE"}}}, "", kStays},
      {"the same",
       {{"kind", "update"}, {"nodes", {"LIVE"}}, {"allow_outage", true}},
       "--allow-outage",
       kStaysOrStops},
      {"update a dead manager",
       {{"kind", "update"}, {"nodes", {"DEAD"}}},
       "",
       [](int, int) { return false; }},
      {"reboot a manager that answers", {{"kind", "reboot"}, {"nodes", {"LIVE"}}}, "", kStays},
      {"the same",
       {{"kind", "reboot"}, {"nodes", {"LIVE"}}, {"allow_outage", true}},
       "--allow-outage",
       kStaysOrStops},
      {"maintenance enter of a manager that answers",
       {{"kind", "maintenance-enter"}, {"nodes", {"LIVE"}}},
       "",
       kStays},
      {"the same",
       {{"kind", "maintenance-enter"}, {"nodes", {"LIVE"}}, {"allow_outage", true}},
       "--allow-outage",
       kStaysOrStops},
      {"maintenance enter of a dead manager",
       {{"kind", "maintenance-enter"}, {"nodes", {"DEAD"}}, {"force", true}},
       "--force",
       {}},
      {"promote a worker",
       {{"kind", "promote"}, {"nodes", {"w1"}}},
       "",
       [](int t, int h) { return h >= q(t) && h == t; }},
      {"the same",
       {{"kind", "promote"}, {"nodes", {"w1"}}, {"force", true}},
       "--force",
       [](int t, int h) { return h >= q(t); }},
      {"demote a manager that answers",
       {{"kind", "demote"}, {"nodes", {"LIVE"}}},
       "",
       [](int t, int h) { return t > 1 && h >= q(t) && h - 1 >= q(t - 1); }},
      {"demote a dead manager",
       {{"kind", "demote"}, {"nodes", {"DEAD"}}},
       "",
       [](int, int) { return false; }},
      {"replace a manager that answers",
       {{"kind", "replace"}, {"nodes", {"LIVE"}}, {"with", "n1"}},
       "",
       [](int t, int h) { return h >= q(t) && h == t; }},
      {"replace a dead manager",
       {{"kind", "replace"},
        {"nodes", {"DEAD"}},
        {"with", "n1"},
        {"force", true},
        {"powered_off", true}},
       "--force --i-have-powered-it-off",
       [](int t, int h) { return t > 1 && h >= q(t); }},
      {"drain, pause or activate a manager that answers",
       {{"kind", "drain"}, {"nodes", {"LIVE"}}},
       "",
       {}},
      {"drain or activate a dead manager", {{"kind", "drain"}, {"nodes", {"DEAD"}}}, "", {}},
      {"decommission everything in one request",
       {{"kind", "decommission"}, {"nodes", {"ALL"}}, {"force", true}, {"powered_off", true}},
       "--force --i-have-powered-it-off",
       [](int, int) { return true; }},
      {"check, verify", {{"kind", "verify"}, {"nodes", {"LIVE"}}}, "", {}},
  };
  return kVerbs;
}

// The request for this fleet; nullopt when it has no such node.
std::optional<Json> request_for(const Verb& verb, Size size) {
  Json body = verb.request;
  const std::string name = body["nodes"][0];
  if (name == "LIVE") {
    if (size.dead == size.total) return std::nullopt;
    body["nodes"] = {manager(1)};
  } else if (name == "DEAD") {
    if (size.dead == 0) return std::nullopt;
    body["nodes"] = {manager(size.total)};
  } else if (name == "ALL") {
    body["nodes"] = {"w1", "w2"};
    for (int i = 1; i <= size.total; ++i) body["nodes"].push_back(manager(i));
  }
  return body;
}

// "yes", or the codes of the refusal.
std::string verdict(const Json& body, Size size) {
  fleet::FleetBuilder fleet = fleet_of(size);
  const auto request = parse_request(body);
  EXPECT_TRUE(request) << body;
  const auto plan = make_plan(fleet.snapshot(), test_catalog(), *request);
  if (plan) {
    EXPECT_TRUE(recheck_quorum(fleet.snapshot(), test_catalog(), *request, *plan)) << body;
    return "yes";
  }
  std::set<std::string> codes;
  for (const Problem& p : plan.error().problems) codes.insert("`" + p.code + "`");
  std::string out;
  for (const std::string& code : codes) out += (out.empty() ? "" : " ") + code;
  return out;
}

std::string table() {
  std::ostringstream out;
  out << "| request | option |";
  for (const Size& s : kSizes) {
    out << " " << s.total;
    if (s.dead > 0) out << ", " << s.dead << " dead";
    out << " |";
  }
  out << "\n| --- | --- |";
  for (size_t i = 0; i < kSizes.size(); ++i) out << " --- |";
  out << "\n";
  for (const Verb& verb : verbs()) {
    out << "| " << verb.what << " | " << (verb.option.empty() ? "" : "`" + verb.option + "`")
        << " |";
    for (const Size& size : kSizes) {
      const auto body = request_for(verb, size);
      out << " " << (body ? verdict(*body, size) : "–") << " |";
    }
    out << "\n";
  }
  return out.str();
}

constexpr std::string_view kHead = R"(# What is allowed with how many managers

This page is written by a test (tests/unit/plan/quorum_table_test.cpp) out of what the planner answers; the rules are in placement.md.
The columns are clusters of 1, 2, 3 and 5 managers and two workers; the dead ones do not answer. A code is the reason of the refusal, `–`
means that there is no such node. Options that are not named change nothing here.

* `quorum`: too few members of etcd or of the scheduler would answer. The message has the numbers.
* `last_manager`: other nodes stay and would be left without a manager.
* `unreachable`: the node does not answer, so nothing can be done on it; a dead one is removed by the options of the next row.
* `no_reachable_manager`: no manager answers through which it could be done.

)";

TEST(QuorumTable, TheDocumentIsWhatThePlannerSays) {
  const std::string file = SOURCE_DIR "/docs/quorum.md";
  const std::string text = std::string(kHead) + table();
  if (std::getenv("CLUSTERCTL_GENERATE")) std::ofstream(file) << text;
  std::ifstream in(file);
  std::stringstream there;
  there << in.rdbuf();
  EXPECT_EQ(there.str(), text)
      << "CLUSTERCTL_GENERATE=1 plan_test --gtest_filter='QuorumTable.*' writes docs/quorum.md";
}

TEST(QuorumTable, ThePlannerKeepsTheRules) {
  for (const Verb& verb : verbs()) {
    for (const Size& size : kSizes) {
      const auto body = request_for(verb, size);
      if (!body || !verb.allowed) continue;
      EXPECT_EQ(verdict(*body, size) == "yes", verb.allowed(size.total, size.total - size.dead))
          << verb.what << " " << verb.option << ", " << size.total << " managers, " << size.dead
          << " dead: " << verdict(*body, size);
    }
  }
}

}  // namespace
}  // namespace clusterctl::plan
