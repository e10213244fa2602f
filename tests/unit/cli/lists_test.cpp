// What lists have in common: tables that fit, filters, --watch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/filters.h"
#include "cli/live_names.h"
#include "cli/text.h"
#include "cli_fixture.h"

namespace clusterctl::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::string& text) {
  return split(text, '\n', true);
}

TEST(FittedTable, CutsTheWidestColumnAndKeepsTheNames) {
  Table table({"ID", "NAME", "ERROR"});
  table.add({"abcdefghijkl", "node1", "no space left on device, and nobody knows why"});
  EXPECT_EQ(table.render(),
            "ID            NAME   ERROR\n"
            "abcdefghijkl  node1  no space left on device, and nobody knows why\n");
  EXPECT_EQ(table.render(66), table.render());
  EXPECT_EQ(table.render(32),
            "ID            NAME   ERROR\n"
            "abcdefghijkl  node1  no space l…\n");
  EXPECT_EQ(table.render(20),
            "ID       NAME   ERR…\n"
            "abcdef…  node1  no …\n");
  EXPECT_EQ(table.render(10),
            "ID    NAME\n"
            "abc…  nod…\n");
  EXPECT_EQ(table.render(3), "ID\nab…\n");
  EXPECT_EQ(table.render(1), "…\n…\n");
}

RC_GTEST_PROP(FittedTable, NoLineIsWiderAndNoRowIsLost, ()) {
  const auto word = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab c-→")));
  const auto columns = *rc::gen::inRange<size_t>(1, 8);
  Table table(*rc::gen::container<std::vector<std::string>>(columns, word));
  const auto rows = *rc::gen::inRange<size_t>(0, 5);
  for (size_t i = 0; i < rows; ++i)
    table.add(*rc::gen::container<std::vector<std::string>>(columns, word));
  const int limit = *rc::gen::inRange(1, 60);
  const auto lines = split(table.render(limit), '\n');
  RC_ASSERT(lines.size() == rows + 2);  // the last one is what follows the last newline
  for (const std::string& line : lines) RC_ASSERT(display_width(line) <= limit);
}

TEST_F(CliTest, FiltersAreAskedOrComparedHere) {
  Json nodes = Json::array({node("n1", "Allocated", "manager"), node("n2")});
  rest.on("GET /v1/nodes?lifecycle=Allocated&host_group=g", {{"nodes", nodes}});
  EXPECT_EQ(run({"node", "ls", "-q", "--filter", "status=allocated", "--filter", "group=g",
                 "--filter", "role=worker"}),
            0);
  EXPECT_EQ(out(), "n2\n");
  EXPECT_EQ(run({"node", "ls", "--filter", "state=Unknown", "--filter", "presence=Unknown"}), 64);
  EXPECT_THAT(err(), HasSubstr("given twice"));
  rest.on("GET /v1/jobs?state=failed&limit=1000",
          {{"jobs", {{{"id", "j1"}, {"initiator", "ann"}}, {{"id", "j2"}, {"initiator", "bob"}}}}});
  EXPECT_EQ(run({"job", "ls", "-q", "--filter", "by=bob", "--state", "failed"}), 0);
  EXPECT_EQ(out(), "j2\n");
  EXPECT_EQ(run({"job", "ls", "--filter", "kind=comission"}), 64);
  EXPECT_THAT(err(), HasSubstr("did you mean commission?"));
}

class WatchTest : public CliTest {
 protected:
  WatchTest() {
    rest.on("GET /v1/events?since=9000000000000000000&limit=1",
            {{"events", Json::array()}, {"last", 5}});
  }
  // The fleet at the first look, at the second, and so on.
  void looks(const std::vector<std::vector<std::string>>& all) {
    for (const auto& names : all) {
      Json nodes = Json::array();
      for (const std::string& name : names) nodes.push_back(node(name));
      rest.on("GET /v1/nodes", {{"nodes", nodes}});
    }
  }
  size_t asked(const std::string& what) const {
    const auto seen = rest.seen();
    return static_cast<size_t>(std::count(seen.begin(), seen.end(), what));
  }
};

TEST_F(WatchTest, AStormOfEventsIsOneLook) {
  looks({{"n1"}, {"n1", "n2"}});
  std::string storm;
  for (int i = 6; i < 206; ++i) storm += fmt::format("id: {}\nevent: event\ndata: {{}}\n\n", i);
  rest.on_stream("GET /v1/events?follow=true&since=5", storm);
  rest.on_stream("GET /v1/events?follow=true&since=205", "");
  rest.piece = 1000;
  terminal.interrupt_after = 40;
  EXPECT_EQ(run({"node", "ls", "--watch", "-q"}), kExitDetached);
  EXPECT_EQ(out(), "n1\n\nn1\nn2\n");
  // Time stands still in the storm; behind it a second passes by waiting for the stream.
  EXPECT_EQ(asked("GET /v1/events?follow=true&since=5"), 1u);
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(timer.at).count();
  EXPECT_LE(asked("GET /v1/nodes"), static_cast<size_t>(2 + passed));
  EXPECT_FALSE(terminal.watching);
}

TEST_F(WatchTest, ARefusalEndsIt) {
  looks({{"n1"}});
  rest.on_problem("GET /v1/nodes", 401, "unauthenticated", "the token was revoked");
  rest.on_stream("GET /v1/events?follow=true&since=5", "id: 6\ndata: {}\n\n");
  rest.on_stream("GET /v1/events?follow=true&since=6", "");
  EXPECT_EQ(run({"node", "ls", "--watch"}), 77);
  EXPECT_THAT(err(), HasSubstr("error: the token was revoked\n"));
}

TEST_F(WatchTest, OnATerminalOnePictureTakesTheOthersPlace) {
  looks({{"n1"}, {"n1", "n2"}});
  terminal.redraw = true;
  terminal.columns = 30;
  terminal.lines = 5;
  rest.on_stream("GET /v1/events?follow=true&since=5", "id: 6\ndata: {}\n\n");
  rest.on_stream("GET /v1/events?follow=true&since=6", "");
  terminal.interrupt_after = 40;
  EXPECT_EQ(run({"node", "ls", "--watch"}), kExitDetached);
  EXPECT_TRUE(out().starts_with("\x1b[H\x1b[2J"));
  EXPECT_EQ(out().find("\x1b[2J", 8), std::string::npos);
  for (std::string line : lines_of(out())) {
    for (size_t at = 0; (at = line.find('\x1b')) != std::string::npos;) {
      const size_t end = line.find_first_of("HJK", at);
      line.erase(at, end - at + 1);
    }
    EXPECT_LT(display_width(line), 30) << line;
  }
}

TEST_F(CliTest, CompletionOffersWhatFits) {
  rest.on("GET /v1/nodes?limit=200&after=m~", {{"nodes", {node("n1"), node("n2"), node("o1")}}});
  EXPECT_EQ(run({"__complete", "node", "drain", "n2", "n"}), 0);
  EXPECT_EQ(out(), "n1\tAllocated, service-worker\n");
  EXPECT_LT(settings.request_timeout, std::chrono::seconds(1));
  env["CLUSTERCTL_SERVER"] = "unix:/a,unix:/b,unix:/c";
  EXPECT_EQ(run({"__complete", "node", "drain", "n2", "n"}), 0);
  EXPECT_LT(settings.request_timeout * 3, std::chrono::seconds(1));
  EXPECT_LT(settings.connect_timeout * 3, std::chrono::seconds(1));
  EXPECT_EQ(run({"__complete", "node", "drain", "--da"}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(run({"__complete", "node", "drain", "--dea"}), 0);
  EXPECT_TRUE(out().starts_with("--deadline\t"));
  EXPECT_EQ(run({"__complete"}), 0);
  EXPECT_EQ(err(), "");
}

TEST_F(CliTest, WhatADaemonSaysIsNotTrustedInAShell) {
  Json evil = Json::array();
  for (const char* name : {"n$(x)", "n`x`", "n x", "n\nx", "n'x", "n\"x", "n\\x", "n-fine"}) {
    evil.push_back(node("n1"));
    evil.back()["name"] = name;
  }
  rest.on("GET /v1/nodes?limit=200&after=m~", {{"nodes", evil}});
  EXPECT_EQ(run({"__complete", "node", "inspect", "n"}), 0);
  EXPECT_EQ(out(), "n-fine\tAllocated, service-worker\n");
}

TEST_F(CliTest, CompletionNeverFails) {
  rest.on_lost("GET /v1/nodes?limit=200", "unreachable");
  env["CLUSTERCTL_TOKEN_FILE"] = "/nonexistent";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"node", "inspect", ""}, {"--server", "x://y", "node", "inspect", ""}, {"-o", ""}}) {
    auto args = words;
    args.insert(args.begin(), "__complete");
    EXPECT_EQ(run(args), 0);
    EXPECT_EQ(err(), "");
  }
}

TEST(LivePlaces, TheFirstRowThatFitsDecides) {
  EXPECT_EQ(live_of("node", "add", "NAME", "NAME"), Live::kNone);
  EXPECT_EQ(live_of("node", "history", "NAME", "NAME"), Live::kNodes);
  EXPECT_EQ(live_of("job", "ls", "--node", "NODE"), Live::kNodes);
  EXPECT_EQ(live_of("", "plan", "--file", "FILE|DIR|-"), Live::kFiles);
}

}  // namespace
}  // namespace clusterctl::cli
