// contiv's face: who may come, how errors look, which status is shown. The routes themselves are
// tried against a daemon: tests/api/test_compat.py.
#include "api/compat/compat.h"

#include <gtest/gtest.h>

#include "api/compat/request.h"
#include "api/compat/views.h"
#include "api/problem.h"
#include "fleet/conditions.h"
#include "fleet/words.h"

namespace clusterctl::api {
namespace {

Request request(const std::string& target, const std::string& address = "127.0.0.1:4711") {
  Request r;
  r.method = "GET";
  r.target = target;
  r.peer.transport = Transport::kTcp;
  r.peer.address = address;
  return r;
}

std::string authorization(Request r) {
  std::string seen;
  compat::through(r, [&](Request& passed) {
    seen = std::string(passed.headers.get("authorization").value_or("none"));
    return Response{};
  });
  return seen;
}

TEST(CompatFront, OwnsItsRoutesAndNoOther) {
  for (const char* mine : {"/info/nodes", "/info/nodes?x=1", "/config", "/globals", "/commission",
                           "/update/node/v1", "/monitor/event"})
    EXPECT_TRUE(compat::owns(mine)) << mine;
  for (const char* other : {"/v1/nodes", "/", "", "/healthz", "info/nodes", "/v1/monitor/event",
                            "/information", "//info/nodes", "/v1?/info/nodes"})
    EXPECT_FALSE(compat::owns(other)) << other;
}

TEST(CompatFront, IsForThisMachineOnly) {
  for (const char* address : {"10.0.0.5:4711", "[::2]:4711", "[fe80::1]:4711", "1.127.0.0:1",
                              "[::ffff:10.0.0.5]:1", "", "[::10]:1"}) {
    Request r = request("/info/nodes", address);
    const Response answer = compat::through(r, [&](Request&) -> Response {
      ADD_FAILURE() << address;
      return {};
    });
    EXPECT_EQ(answer.status, 403) << address;
    EXPECT_EQ(answer.body.find('\n'), answer.body.size() - 1) << address;
  }
  for (const char* address :
       {"127.0.0.1:4711", "127.9.0.1:1", "[::1]:4711", "[::ffff:127.0.0.1]:1"}) {
    Request r = request("/info/nodes", address);
    EXPECT_EQ(compat::through(r, [](Request&) { return Response{}; }).status, 200) << address;
  }
  Request v1 = request("/v1/nodes", "10.0.0.5:4711");  // has its own rules
  EXPECT_EQ(compat::through(v1, [](Request&) { return Response{}; }).status, 200);
}

TEST(CompatFront, TakesThePasswordAsTheToken) {
  const auto with = [](const std::string& target, const std::string& value) {
    Request r = request(target);
    r.headers.add("Authorization", value);
    return authorization(std::move(r));
  };
  EXPECT_EQ(with("/config", "Basic dG9rZW46c2VjcmV0"), "Bearer secret");
  EXPECT_EQ(with("/config", "bAsIc  OnNlY3JldA=="), "Bearer secret");
  EXPECT_EQ(with("/config", "Basic YTpiOmM="), "Bearer b:c");
  EXPECT_EQ(with("/config", "Basic YQ=="), "Basic YQ==");  // no password
  EXPECT_EQ(with("/config", "Basic ?"), "Basic ?");
  EXPECT_EQ(with("/config", "Bearer secret"), "Bearer secret");
  EXPECT_EQ(with("/v1/nodes", "Basic dG9rZW46c2VjcmV0"), "Basic dG9rZW46c2VjcmV0");
  EXPECT_EQ(authorization(request("/config")), "none");
}

TEST(CompatFront, ErrorsAreOneLineOfText) {
  const auto line = [](const Error& error) {
    Request r = request("/info/nodes");
    const Response answer = compat::through(r, [&](Request&) { return problem_response(error); });
    EXPECT_EQ(answer.status, http_status(error.code));
    EXPECT_EQ(answer.content_type, "text/plain; charset=utf-8");
    return answer.body;
  };
  EXPECT_EQ(line({Code::kNotFound, "x", "no\nsuch node", "look", {}}), "no such node (look)\n");
  EXPECT_EQ(line({Code::kRefused,
                  "x",
                  "2 problems, the first: a",
                  "",
                  {{"x", "a", "", "n1"}, {"y", "b", "", "n2"}}}),
            "a; b\n");
  EXPECT_NE(line({Code::kUnauthenticated, "x", "who?", "", {}}).find("TOKEN@"), std::string::npos);
  EXPECT_EQ(line({Code::kInternal, "x", "/secret/path", "", {}}).find("/secret"),
            std::string::npos);
  Request v1 = request("/v1/nodes");
  const Response untouched = compat::through(v1, [](Request&) {
    return problem_response(Error{Code::kNotFound, "x", "gone", "", {}});
  });
  EXPECT_EQ(untouched.content_type, "application/problem+json");
}

TEST(CompatBody, EmptyFieldsAreNoFields) {
  const auto read = [](const std::string& body) {
    Request r = request("/globals");
    r.body = body;
    r.headers.add("Content-Type", "application/json");
    return compat::read_body(r);
  };
  const auto all = read(
      R"({"nodes":null,"addrs":[],"host_group":"","extra_vars":" ","job":"",
          "monitor_event":{"name":"","nodes":null},"config":{"serf":{"Addr":""},"ansible":{}}})");
  ASSERT_TRUE(all) << all.error().line();
  EXPECT_TRUE(all->nodes.empty() && all->extra_vars.empty() && all->monitor_event.is_null() &&
              all->config.is_null());
  ASSERT_TRUE(read(""));
  for (const char* bad : {R"({"extra_vars":{}})", R"({"extra_vars":"[]"})", R"({"nodes":"a"})",
                          R"({"config":[]})", R"({"hostgroup":"a"})", "[]", "{"})
    EXPECT_FALSE(read(bad)) << bad;
}

TEST(CompatViews, NamesAreMadeOfLabelAndSerial) {
  EXPECT_EQ(compat::node_name("N1", "FCH1"), "n1-fch1");
  EXPECT_EQ(compat::node_name(" n1 ", ""), "n1");
  EXPECT_EQ(compat::node_name("n1", "VMware-56 4d / 9a"), "n1-vmware-56-4d-9a");
  EXPECT_EQ(compat::node_name("cluster-node1", "0"), "cluster-node1-0");
}

TEST(CompatViews, EveryLifecycleWithAndWithoutFailure) {
  for (const auto& [lifecycle, word] : fleet::Words<fleet::Lifecycle>::kTable) {
    fleet::Node node;
    node.id = "n";
    node.status.lifecycle = lifecycle;
    EXPECT_EQ(compat::status_word(node, {}), word);
    fleet::set_condition(node.status, fleet::condition::kFailed, "x", "", {});
    const bool commissioned =
        lifecycle == fleet::Lifecycle::kMaintenance || lifecycle == fleet::Lifecycle::kAllocated;
    EXPECT_EQ(compat::status_word(node, {}), commissioned ? "Unallocated" : word);
    EXPECT_EQ(compat::status_word(node, {{"n", "Maintenance"}}), "Maintenance");
  }
}

TEST(CompatViews, OpenWorkIsShownAtOnce) {
  const auto job = [](const std::string& kind, job::State state, job::OutcomeState outcome) {
    job::Job made;
    made.kind = kind;
    made.state = state;
    made.nodes.emplace_back();
    made.nodes[0].node = "n";
    made.nodes[0].state = outcome;
    return compat::busy_nodes({{"j", std::make_shared<const job::Job>(std::move(made))}});
  };
  using job::OutcomeState, job::State;
  EXPECT_EQ(job("commission", State::kQueued, OutcomeState::kPending).at("n"), "Provisioning");
  EXPECT_EQ(job("update", State::kRunning, OutcomeState::kRunning).at("n"), "Maintenance");
  EXPECT_EQ(job("decommission", State::kQueued, OutcomeState::kPending).at("n"), "Cancelled");
  EXPECT_TRUE(job("update", State::kRunning, OutcomeState::kSucceeded).empty());
  EXPECT_TRUE(job("update", State::kFailed, OutcomeState::kPending).empty());
  EXPECT_TRUE(job("verify", State::kRunning, OutcomeState::kRunning).empty());
}

TEST(CompatViews, FourWordsForTheStatesOfAJob) {
  using job::State;
  EXPECT_EQ(compat::job_status(State::kQueued), "Queued");
  for (const State s : {State::kRunning, State::kPaused})
    EXPECT_EQ(compat::job_status(s), "Running");
  EXPECT_EQ(compat::job_status(State::kSucceeded), "Complete");
  for (const State s : {State::kFailed, State::kCancelled, State::kInterrupted})
    EXPECT_EQ(compat::job_status(s), "Errored");
}

}  // namespace
}  // namespace clusterctl::api
