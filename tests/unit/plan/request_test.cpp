#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace clusterctl::plan {
namespace {

std::vector<std::string> problems(const Json& body) {
  const auto r = parse_request(body);
  std::vector<std::string> out;
  if (r) return out;
  EXPECT_TRUE(r.error().code == Code::kInvalid || r.error().code == Code::kTooLarge);
  for (const Problem& p : r.error().problems) out.push_back(p.code);
  return out;
}
using Codes = std::vector<std::string>;

TEST(Request, ReadsEveryField) {
  const Json body{{"kind", "commission"},
                  {"nodes", {"n1", "n2"}},
                  {"host_group", "service-master"},
                  {"capabilities", {"b", "a", "a"}},
                  {"availability", "drain"},
                  {"vars", {{"x", 1}}},
                  {"force", true},
                  {"allow_outage", true},
                  {"keep_on_failure", true},
                  {"if_busy", "refuse"},
                  {"dry_run", true},
                  {"timeout", "10m"},
                  {"silence_timeout", 90}};
  const auto r = parse_request(body);
  ASSERT_TRUE(r) << r.error().line();
  EXPECT_EQ(r->capabilities, (Codes{"a", "b"}));
  EXPECT_EQ(r->availability, fleet::Availability::kDrain);
  Json want = body;
  want["capabilities"] = {"a", "b"};
  want["timeout"] = 600;
  EXPECT_EQ(to_json(*r), want);
  EXPECT_EQ(to_json(*parse_request(to_json(*r))), want);
  const auto d = parse_request({{"kind", "decommission"},
                                {"nodes", {"n1"}},
                                {"level", "images"},
                                {"force", true},
                                {"powered_off", true}});
  ASSERT_TRUE(d);
  EXPECT_EQ(to_json(*parse_request(to_json(*d))), to_json(*d));
  EXPECT_EQ(d->level, "images");
}

TEST(Request, FormIsCheckedAllAtOnce) {
  EXPECT_EQ(problems({{"kind", "comission"},
                      {"node", "n1"},
                      {"force", "yes"},
                      {"vars", Json::array()},
                      {"level", "deep"},
                      {"selector", "a b"}}),
            (Codes{"unknown_key", "unknown_kind", "wrong_type", "bad_selector", "unknown_word",
                   "wrong_type"}));
  EXPECT_EQ(parse_request({{"kind", "comission"}}).error().hint, "did you mean \"commission\"?");
  EXPECT_EQ(problems({{"kind", "commission"}, {"nodes", Json::array()}}), Codes{"no_nodes"});
  EXPECT_EQ(problems({{"kind", "commission"}, {"nodes", {"n1", " "}}}), Codes{"no_nodes"});
  EXPECT_EQ(problems({{"kind", "commission"}, {"nodes", "n1"}}), Codes{"wrong_type"});
  EXPECT_EQ(problems({{"kind", "commission"}, {"nodes", {"n1"}}, {"selector", "a=b"}}),
            Codes{"nodes_and_selector"});
  EXPECT_EQ(problems(Json{{"kind", "commission"}, {"nodes", std::vector<std::string>(10001, "n")}}),
            Codes{"too_many_nodes"});
  EXPECT_EQ(problems({{"kind", "verify"}, {"timeout", "soon"}, {"silence_timeout", 0}}),
            (Codes{"bad_duration", "bad_duration"}));
  EXPECT_EQ(problems({{"kind", "verify"}, {"timeout", Json::array()}}), Codes{"bad_duration"});
  EXPECT_EQ(problems({{"kind", ""}}), Codes{"unknown_kind"});
  EXPECT_EQ(problems(Json::object()), Codes{"unknown_kind"});
}

TEST(Request, NothingIsSilentlyIgnored) {
  const auto with = [](const char* kind, const char* key, const Json& value) {
    return problems({{"kind", kind}, {"nodes", {"n1"}}, {key, value}});
  };
  EXPECT_EQ(with("decommission", "host_group", "service-worker"), Codes{"not_for_kind"});
  EXPECT_EQ(with("decommission", "capabilities", {"a"}), Codes{"not_for_kind"});
  EXPECT_EQ(with("verify", "availability", "drain"), Codes{"not_for_kind"});
  EXPECT_EQ(with("commission", "level", "images"), Codes{"not_for_kind"});
  EXPECT_EQ(with("commission", "level", "state"), Codes{});
  EXPECT_EQ(
      problems({{"kind", "commission"}, {"nodes", {"n"}}, {"powered_off", true}, {"force", true}}),
      Codes{"not_for_kind"});
  EXPECT_EQ(with("decommission", "powered_off", true), Codes{"needs_force"});
}

TEST(Request, HostileInputIsRefusedNotCrashedOn) {
  const std::vector<Json> values{Json(),
                                 Json(true),
                                 Json(-1),
                                 Json(1e300),
                                 Json("x"),
                                 Json("\xff\xfe"),
                                 Json("-oProxyCommand=x"),
                                 Json("{{ 1 }}"),
                                 Json::array({Json::object()}),
                                 Json{{"a", Json()}},
                                 Json(std::string(100000, 'x'))};
  for (const char* key :
       {"kind", "nodes", "host_group", "capabilities", "availability", "vars", "selector", "level",
        "force", "powered_off", "allow_outage", "keep_on_failure", "if_busy", "dry_run"}) {
    for (const Json& value : values) {
      Json body{{"kind", "commission"}, {"nodes", {"n1"}}};
      body[key] = value;
      const auto r = parse_request(body);
      if (r) (void)make_plan(fleet::Snapshot{}, test_catalog(), *r);
    }
  }
  for (const Json& value : values) {
    if (value.is_object()) continue;
    EXPECT_FALSE(parse_request(value));
  }
  EXPECT_EQ(problems({{"kind", "check"}, {"vars", {{"x", std::string(400 << 10, 'x')}}}}),
            Codes{"vars_too_large"});
}

TEST(Request, VariablesAreNeverARole) {
  const auto r = parse_request(
      {{"kind", "commission"},
       {"nodes", {"n1"}},
       {"vars", {{"contiv_role", "service-master"}, {"host_group", "service-master"}}}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->host_group, "");
}

}  // namespace
}  // namespace clusterctl::plan
