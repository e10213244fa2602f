#include "fleet/node_json.h"

#include <gtest/gtest.h>

#include <set>

#include "fakes/fleet_builder.h"

namespace clusterctl::fleet {
namespace {

Node full_node() {
  Node n = make_node("n1", 1);
  n.generation = 3;
  n.resource_version = 7;
  n.spec.ssh = {"admin",
                2222,
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ",
                "root@jump:22",
                {"-o", "Compression=yes"}};
  n.spec.acceptance = Acceptance::kRejected;
  n.spec.allocation = Allocation::kSpare;
  n.spec.host_group = "service-master";
  n.spec.capabilities = {"storage", "ucp-controller"};
  n.spec.availability = Availability::kDrain;
  n.spec.labels = {{"rack", "r1"}};
  n.spec.vars = {{"a", {{"b", 1}}}, {"big", 12345678901234567890ULL}, {"s", {{"secret", "pw"}}}};
  n.spec.versions = {{"docker", "20.10"}};
  n.status.lifecycle = Lifecycle::kMaintenance;
  n.status.previous = Lifecycle::kAllocated;
  n.status.presence = Presence::kDisappeared;
  n.status.last_seen = at(5);
  n.status.applied = Applied{"service-master",      {"ucp-controller"}, Availability::kPause,
                             {{"docker", "20.10"}}, {"base", "docker"}, "abc",
                             {{"x", "d1"}},         {{"docker", "d2"}}};
  n.status.services["etcd"] = {"3.4",
                               true,
                               "m",
                               "leader",
                               "id1",
                               {{"id1", "n1", "10.0.0.1", "member", true, true}},
                               "https://10.0.0.1:2379",
                               at(9)};
  n.status.hardware =
      Hardware{"Cisco", "UCSB",   "S1",  "u",  "m",   "b-series", "debian",
               "12",    "x86_64", "6.1", "n1", "CH1", "3",        {"00:25:b5:00:00:01"},
               8,       16000};
  n.status.identity = Identity{"S0", "u", "ssh-ed25519 AAAA", {"00:25:b5:00:00:01"}};
  n.status.elsewhere = Elsewhere{"10.0.0.77", "other", at(7)};
  n.status.conditions = {{"Dirty", "left", "job1", at(3)}, {"Failed", "x", "job2", at(4)}};
  n.status.maintenance = Maintenance{"maintenance-enter", "new memory", "ann", "job3", at(6), at(7),
                                     Availability::kPause};
  n.status.fence_runs = {"run1", "run2"};
  return n;
}

TEST(NodeJson, StoreKeepsEveryField) {
  const Node n = full_node();
  const auto back = node_from_json(to_store(n));
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(*back, n);
  EXPECT_EQ(*node_from_json(to_store(make_node("n2", 2))), make_node("n2", 2));
}

TEST(NodeJson, WireShapeIsTheDocumentedOne) {
  const Json j = to_json(full_node(), "manager");
  std::vector<std::string> keys;
  for (const auto& [key, value] : j.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"created", "generation", "id", "name",
                                            "resource_version", "role", "spec", "status"}));
  EXPECT_EQ(j["role"], "manager");
  EXPECT_EQ(j["status"]["lifecycle"], "Maintenance");
  EXPECT_EQ(j["status"]["services"]["etcd"]["members"][0]["reachable"], true);
  EXPECT_EQ(j["spec"]["vars"]["big"].dump(), "12345678901234567890");
  EXPECT_EQ(j["created"], "2027-01-15T08:00:00.000Z");
  const Json fresh = to_json(make_node("n2", 2), "");
  EXPECT_TRUE(fresh["status"]["applied"].is_null());
  EXPECT_TRUE(fresh["status"]["hardware"].is_null());
  EXPECT_TRUE(fresh["status"]["previous"].is_null());
  EXPECT_TRUE(fresh["status"]["last_seen"].is_null());
}

TEST(NodeJson, WordsAreReadBothWays) {
  for (const auto& [e, text] : Words<Lifecycle>::kTable) EXPECT_EQ(from_word<Lifecycle>(text), e);
  for (const auto& [e, text] : Words<Presence>::kTable) EXPECT_EQ(from_word<Presence>(text), e);
  EXPECT_EQ(from_word<Allocation>("in-service"), Allocation::kInService);
  EXPECT_FALSE(from_word<Lifecycle>("allocated"));
  EXPECT_FALSE(from_word<Lifecycle>(""));
}

TEST(NodeJson, DamagedRecordsAreNamedNotTrusted) {
  const Json good = to_store(full_node());
  Json newer = good;
  newer["v"] = 2;
  EXPECT_EQ(node_from_json(newer).error().reason, "newer_schema");
  for (const char* key : {"id", "name", "v", "generation", "resource_version", "spec", "status"}) {
    Json broken = good;
    broken.erase(key);
    EXPECT_EQ(node_from_json(broken).error().reason, "damaged") << key;
  }
  for (const char* pointer :
       {"/spec/addr", "/spec/acceptance", "/spec/labels", "/spec/ssh", "/spec/vars",
        "/status/lifecycle", "/status/applied", "/status/services", "/status/services/etcd",
        "/status/services/etcd/members", "/status/services/etcd/members/0", "/status/conditions",
        "/status/conditions/0", "/status/hardware", "/created", "/status/last_seen"}) {
    Json broken = good;
    broken[Json::json_pointer(pointer)] = 17;
    EXPECT_EQ(node_from_json(broken).error().reason, "damaged") << pointer;
    broken[Json::json_pointer(pointer)] = "neither";
    if (std::string(pointer) != "/spec/addr") {
      EXPECT_EQ(node_from_json(broken).error().reason, "damaged") << pointer;
    }
  }
  for (const Json& bad : {Json(), Json(1), Json::array(), Json("x")})
    EXPECT_FALSE(node_from_json(bad));
}

TEST(ParseSpec, DefaultsAndNormalForm) {
  const auto spec =
      parse_spec({{"addr", "10.0.0.1"}, {"capabilities", {"b", "a", "b"}}, {"ssh", nullptr}});
  ASSERT_TRUE(spec) << spec.error().line();
  EXPECT_EQ(spec->capabilities, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(spec->ssh.port, 22);
  EXPECT_EQ(spec->acceptance, Acceptance::kAccepted);
}

TEST(ParseSpec, RefusesWithAllProblemsAtOnce) {
  const auto spec = parse_spec({{"adr", "10.0.0.1"},
                                {"ssh", {{"prot", 22}, {"port", 0}}},
                                {"acceptance", "yes"},
                                {"versions", {{"docker", 20.10}}},
                                {"labels", {{"a", 1}}},
                                {"capabilities", {"UPPER"}},
                                {"host_group", "a b"},
                                {"vars", Json::array()}});
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, Code::kInvalid);
  std::vector<std::string> codes;
  for (const Problem& p : spec.error().problems) codes.push_back(p.code);
  EXPECT_EQ(codes, (std::vector<std::string>{"unknown_key", "bad_addr", "unknown_key",
                                             "bad_ssh_port", "unknown_word", "bad_word", "bad_word",
                                             "wrong_type", "number_as_version", "wrong_type"}));
  EXPECT_EQ(spec.error().problems[0].hint, "did you mean \"addr\"?");
  EXPECT_NE(spec.error().message.find("10 problems"), std::string::npos) << spec.error().message;
}

TEST(ParseSpec, WrongTypesNeverThrow) {
  const std::vector<Json> values{Json(),
                                 Json(true),
                                 Json(-1),
                                 Json(1.5),
                                 Json(18446744073709551615ULL),
                                 Json("x"),
                                 Json("\xff"),
                                 Json::array(),
                                 Json::array({1, Json()}),
                                 Json::object(),
                                 Json{{"a", Json()}},
                                 Json{{"", Json::array()}}};
  for (const char* key : {"addr", "ssh", "acceptance", "allocation", "host_group", "capabilities",
                          "availability", "labels", "vars", "versions", "x"}) {
    for (const Json& value : values) {
      (void)parse_spec({{"addr", "10.0.0.1"}, {key, value}});
      (void)parse_new_node({{"name", value}, {"spec", {{key, value}}}});
      (void)apply_spec_patch(full_node(), {{"spec", {{key, value}}}});
      for (const char* inner : {"user", "port", "host_key", "jump", "extra_args"}) {
        (void)parse_spec({{"addr", "10.0.0.1"}, {"ssh", {{inner, value}}}});
      }
    }
  }
  for (const Json& value : values) {
    (void)parse_spec(value);
    EXPECT_FALSE(parse_new_node(value));
    (void)apply_spec_patch(full_node(), value);
    EXPECT_FALSE(node_from_json(value));
  }
}

TEST(ParseNewNode, NameAndSpecTogether) {
  const auto node = parse_new_node(
      {{"name", "n1"}, {"spec", {{"addr", "n1.example.com"}, {"acceptance", "pending"}}}});
  ASSERT_TRUE(node) << node.error().line();
  EXPECT_TRUE(node->acceptance_given);
  EXPECT_FALSE(parse_new_node({{"name", "n1"}, {"spec", {{"addr", "h"}}}})->acceptance_given);
  EXPECT_FALSE(parse_new_node({{"name", "n1"}}));
  EXPECT_EQ(parse_new_node({{"name", "N1.Example.COM."}, {"spec", {{"addr", "h"}}}})->name,
            "n1.example.com");
  EXPECT_EQ(parse_new_node({{"name", "n_1"}, {"spec", {{"addr", "-x"}}}, {"id", "x"}})
                .error()
                .problems.size(),
            3u);
}

TEST(Patch, ReportsWhatChanged) {
  Node n = full_node();
  n.status.lifecycle = Lifecycle::kUnallocated;
  auto patch = apply_spec_patch(n, {{"spec",
                                     {{"host_group", "service-worker"},
                                      {"labels", {{"rack", nullptr}, {"row", "2"}}},
                                      {"vars", {{"a", nullptr}}}}}});
  ASSERT_TRUE(patch) << patch.error().line();
  EXPECT_EQ(patch->changed, (std::vector<std::string>{"host_group", "labels", "vars"}));
  EXPECT_TRUE(patch->needs_job.empty());
  EXPECT_EQ(patch->spec.labels, (std::map<std::string, std::string>{{"row", "2"}}));
  EXPECT_FALSE(patch->spec.vars.contains("a"));
  EXPECT_EQ(patch->spec.ssh, n.spec.ssh);
  EXPECT_TRUE(check_patch(n, *patch));
  EXPECT_TRUE(apply_spec_patch(n, {{"spec", Json::object()}})->changed.empty());
}

TEST(Patch, FieldsThatNeedWorkOnACommissionedNode) {
  const std::map<std::string, Json> values{
      {"addr", "10.9.9.9"},           {"ssh", {{"port", 23}}},          {"acceptance", "accepted"},
      {"allocation", "retired"},      {"host_group", "service-worker"}, {"capabilities", {"x"}},
      {"availability", "active"},     {"labels", {{"a", "b"}}},         {"vars", {{"x", 1}}},
      {"versions", {{"docker", "1"}}}};
  const std::set<std::string> need{"acceptance",   "allocation", "availability",
                                   "capabilities", "host_group", "versions"};
  for (Lifecycle l : {Lifecycle::kProvisioning, Lifecycle::kAllocated, Lifecycle::kMaintenance,
                      Lifecycle::kCancelled}) {
    Node n = full_node();
    n.status.lifecycle = l;
    for (const auto& [field, value] : values) {
      const auto patch = apply_spec_patch(n, {{"spec", {{field, value}}}});
      ASSERT_TRUE(patch) << field;
      EXPECT_EQ(patch->needs_job.size(), need.count(field)) << field;
      const auto fine = check_patch(n, *patch);
      EXPECT_EQ(fine.has_value(), need.count(field) == 0) << field;
      if (fine) continue;
      EXPECT_EQ(fine.error().code, Code::kConflict);
      EXPECT_EQ(fine.error().reason, "needs_job");
      const bool updated = field == "host_group" || field == "capabilities";
      const std::string verb = field == "availability" ? "activate"
                               : updated               ? "update"
                                                       : "decommission";
      EXPECT_NE(fine.error().hint.find("clusterctl node " + verb + " n1"), std::string::npos);
    }
  }
}

TEST(Patch, SecretReferencesAreReplacedWhole) {
  Node n = full_node();
  auto patch = apply_spec_patch(n, {{"spec", {{"vars", {{"a", {{"secret", "new"}}}}}}}});
  EXPECT_EQ(patch->spec.vars["a"], (Json{{"secret", "new"}}));
  patch = apply_spec_patch(n, {{"spec", {{"vars", {{"s", {{"secret", "pw"}}}}}}}});
  EXPECT_TRUE(patch->changed.empty());
}

TEST(Patch, UnknownNamesAreRefusedEvenAsNull) {
  EXPECT_EQ(apply_spec_patch(full_node(), {{"spec", {{"adr", nullptr}}}}).error().reason,
            "unknown_key");
  EXPECT_EQ(apply_spec_patch(full_node(), {{"name", "n2"}}).error().reason, "unknown_key");
  EXPECT_EQ(apply_spec_patch(full_node(), {{"spec", {{"addr", nullptr}}}}).error().reason,
            "bad_addr");
  EXPECT_EQ(apply_spec_patch(full_node(), {{"spec", {{"ssh", {{"x", 1}}}}}}).error().reason,
            "unknown_key");
}

TEST(Snapshot, FindsByIdPrefixAndName) {
  FleetBuilder fleet;
  fleet.add("alpha-one");
  fleet.add("alpha-two");
  const Snapshot& s = fleet.snapshot();
  EXPECT_EQ((*s.find("alpha-one"))->name, "alpha-one");
  EXPECT_EQ((*s.find(" Alpha-ONE "))->name, "alpha-one");
  EXPECT_EQ((*s.find("alpha-t"))->name, "alpha-two");
  EXPECT_EQ(s.find("alpha").error().reason, "ambiguous");
  EXPECT_EQ(s.find("alp").error().reason, "no_such_node");
  EXPECT_EQ(s.find("alpha-ona").error().hint, "did you mean \"alpha-one\"?");
  EXPECT_FALSE(s.find(""));
  EXPECT_FALSE(s.find(std::string(100000, 'x')));
  EXPECT_FALSE(s.find("\xff\n"));
}

}  // namespace
}  // namespace clusterctl::fleet
