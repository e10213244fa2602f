#include "client/sse_reader.h"

#include <gmock/gmock.h>

#include <random>

#include "fakes/fake_rest.h"

namespace clusterctl::client {
namespace {

using fakes::FakeRest;
using fakes::FakeTimer;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> read(const std::vector<std::string>& pieces, bool* broken = nullptr) {
  SseParser parser;
  std::vector<std::string> out;
  for (const std::string& piece : pieces) {
    parser.feed(piece, [&](const SseMessage& m) {
      out.push_back(m.event + "|" + m.id + "|" + m.data);
      return true;
    });
  }
  if (broken) *broken = parser.broken();
  return out;
}

TEST(SseParser, FollowsTheStandard) {
  EXPECT_THAT(read({"data: a\n\n"}), ElementsAre("message||a"));
  EXPECT_THAT(read({"id: 7\nevent: task\ndata: a\ndata:b\n\ndata\n\n"}),
              ElementsAre("task|7|a\nb", "message|7|"));
  EXPECT_THAT(read({": heartbeat\n\n", "event: x\n\n", "data: y\n\n"}), ElementsAre("message||y"));
  EXPECT_THAT(read({"\xef\xbb\xbf"
                    "data: a\r\rdata: b\r\n\r\n"}),
              ElementsAre("message||a", "message||b"));
  EXPECT_THAT(read({"id: 1\ndata: a\n\nid\ndata: b\n\n"}),
              ElementsAre("message|1|a", "message||b"));
  EXPECT_THAT(read({std::string("id: a\0b\ndata: x\n\n", 17)}), ElementsAre("message||x"));
  EXPECT_THAT(read({"unknown: field\nretry: 5\ndata:  two blanks\n\n"}),
              ElementsAre("message|| two blanks"));
  EXPECT_THAT(read({"data: unfinished\n"}), ElementsAre());
}

TEST(SseParser, PiecesDoNotMatter) {
  const std::string text =
      "id: r1:1\r\nevent: task\r\ndata: {\"a\":\"\xc3\xbc\"}\r\n\r\n: beat\n\nid: r1:2\ndata: "
      "x\ndata: y\n\nevent: end\ndata: {}\n\n";
  const auto whole = read({text});
  ASSERT_EQ(whole.size(), 3u);
  std::vector<std::string> bytes;
  for (char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(read(bytes), whole);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = random() % 9;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    EXPECT_EQ(read(pieces), whole);
  }
}

TEST(SseParser, HasLimits) {
  bool broken = false;
  read({std::string(SseParser::kMaxLine + 1, 'x')}, &broken);
  EXPECT_TRUE(broken);
  std::vector<std::string> lines(6, "data: " + std::string(SseParser::kMaxLine - 10, 'x') + "\n");
  read(lines, &broken);
  EXPECT_TRUE(broken);
}

TEST(SseParser, NoiseDoesNotCrash) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string noise;
    for (int i = 0; i < 500; ++i) noise += "dataidevent:\n\r \0\xff{}"[random() % 20];
    read({noise});
  }
}

class FollowTest : public testing::Test {
 protected:
  Result<bool> run(milliseconds give_up = milliseconds{5000}) {
    Follow what;
    what.request.path = "/e";
    what.request.query = {{"follow", "true"}};
    what.give_up_after = give_up;
    what.on_message = [this](const SseMessage& m) {
      seen.push_back(m.data);
      return m.event != "end";
    };
    what.on_lost = [this] { ++lost; };
    what.keep_going = [this] { return keep_going; };
    return follow(rest, timer, std::move(what));
  }
  FakeRest rest;
  FakeTimer timer;
  std::vector<std::string> seen;
  int lost = 0;
  bool keep_going = true;
};

TEST_F(FollowTest, ReconnectsWithItsCursor) {
  rest.on_lost("GET /e?follow=true", "connection_lost",
               "id: r:1\ndata: one\n\nid: r:2\ndata: two\n\nid: r:3\ndata: hal");
  rest.on_lost("GET /e?follow=true&since=r%3A2", "unreachable");
  rest.on_lost("GET /e?follow=true&since=r%3A2", "unreachable");
  rest.on_problem("GET /e?follow=true&since=r%3A2", 503, "not_ready", "starting");
  rest.on_stream("GET /e?follow=true&since=r%3A2",
                 "id: r:3\ndata: three\n\nevent: end\ndata: {}\n\n");
  const auto done = run();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*done);
  EXPECT_THAT(seen, ElementsAre("one", "two", "three", "{}"));
  EXPECT_EQ(lost, 1);
}

TEST_F(FollowTest, AnEndWithoutEndIsALostConnection) {
  rest.on_stream("GET /e?follow=true", "id: 1\ndata: one\n\n");
  rest.on_stream("GET /e?follow=true&since=1", "event: end\ndata: {}\n\n");
  EXPECT_TRUE(run().value_or(false));
  EXPECT_EQ(lost, 1);
}

TEST_F(FollowTest, GivesUpInTheEnd) {
  rest.on_lost("GET /e?follow=true", "unreachable");
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_GE(timer.at, milliseconds{5000});
  EXPECT_LT(timer.at, milliseconds{7000});
  EXPECT_EQ(lost, 1);
}

TEST_F(FollowTest, WhatCannotHealEndsAtOnce) {
  rest.on_problem("GET /e?follow=true", 404, "no_job", "no such job");
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, "no_job");
  EXPECT_TRUE(timer.sleeps.empty());
}

TEST_F(FollowTest, StopsWhenAsked) {
  rest.on_lost("GET /e?follow=true", "unreachable");
  keep_going = false;
  EXPECT_FALSE(run().value_or(true));
}

TEST_F(FollowTest, ATooLongLineIsAnError) {
  rest.piece = 1 << 16;
  rest.on_stream("GET /e?follow=true", std::string(SseParser::kMaxLine + 5, 'x'));
  EXPECT_EQ(run().error().reason, "bad_stream");
}

}  // namespace
}  // namespace clusterctl::client
