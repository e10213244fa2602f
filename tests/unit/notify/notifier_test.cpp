// Deliveries, with a transport that records and a clock that stands still.
#include "notify/notifier.h"

#include <gmock/gmock.h>

#include <map>

#include "base/digest.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_steady.h"

namespace clusterctl::notify {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeTransport final : public Transport {
 public:
  void start(Post post) override { posts.push_back(std::move(post)); }
  std::vector<Outcome> wait(milliseconds) override { return {}; }
  void wake() override {}
  std::vector<Post> posts;
};

class FakeSource final : public Source {
 public:
  Page since(uint64_t seq, size_t limit) const override {
    Page page;
    page.last = events.empty() ? forgotten : events.rbegin()->first;
    if (seq < forgotten) page.lost_to = forgotten;
    for (auto it = events.upper_bound(std::max(seq, forgotten));
         it != events.end() && page.events.size() < limit; ++it)
      page.events.push_back(it->second);
    return page;
  }
  std::optional<Json> describe(uint64_t seq) const override {
    if (unknown == seq) return std::nullopt;
    return Json{{"seq", seq}};
  }
  std::string fleet_id() const override { return "fleet"; }

  std::map<uint64_t, Event> events;
  uint64_t forgotten = 0;  // events up to here are no longer kept
  uint64_t unknown = 0;
};

class FakeLedger final : public Ledger {
 public:
  Result<Cursors> load() override { return cursors; }
  Status save(const Cursors& now) override {
    if (broken) return fail(Code::kInternal, "disk", "no space");
    cursors = now;
    ++saves;
    return {};
  }
  Cursors cursors;
  int saves = 0;
  bool broken = false;
};

class NotifierTest : public testing::Test {
 protected:
  NotifierTest() {
    options_.now = [this] { return steady_.now(); };
    receivers_ = {receiver("a")};
  }

  static Receiver receiver(const std::string& name) {
    Receiver r;
    r.name = name;
    r.url = "https://" + name + ".example.com/hook/very-secret-path";
    r.secret = "0123456789abcdef";
    r.events = {"job.ended"};
    return r;
  }

  // A new notifier, as after a restart of the daemon.
  void start() {
    notifier_ =
        std::make_unique<Notifier>(options_, receivers_, source_, transport_, ledger_, clock_);
    transport_.posts.clear();
    const auto started = notifier_->start();
    ASSERT_TRUE(started) << started.error().line();
    turn();
  }
  milliseconds turn(const std::vector<Outcome>& outcomes = {}) { return notifier_->turn(outcomes); }
  milliseconds answer(int status) {
    return turn({{transport_.posts.back().ticket, status, status == 0 ? "no route" : ""}});
  }
  void add(const std::string& type = "job.ended") {
    const uint64_t seq = ++last_;
    source_.events[seq] = {seq, clock_.now(), type};
  }
  void later(milliseconds d) {
    clock_.advance(d);
    steady_.advance(d);
  }
  std::vector<std::string> bodies() const {
    std::vector<std::string> out;
    for (const Post& post : transport_.posts) out.push_back(post.body);
    return out;
  }
  static std::string header(const Post& post, const std::string& name) {
    for (const std::string& line : post.headers) {
      if (line.starts_with(name + ": ")) return line.substr(name.size() + 2);
    }
    return "";
  }
  Json view(size_t lane = 0) { return notifier_->view()["receivers"][lane]; }

  FakeClock clock_;
  FakeSteady steady_;
  FakeTransport transport_;
  FakeSource source_;
  FakeLedger ledger_;
  Options options_;
  std::vector<Receiver> receivers_;
  std::unique_ptr<Notifier> notifier_;
  uint64_t last_ = 0;
};

TEST_F(NotifierTest, SendsWhatIsWantedInOrderOneAtATime) {
  start();
  add("job.started");
  add();
  add("node.added");
  add();
  turn();
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":2})"));
  turn();
  EXPECT_EQ(transport_.posts.size(), 1u) << "the next waits for the answer";
  answer(204);
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":2})", R"({"seq":4})"));
  answer(200);
  EXPECT_EQ(view()["delivered"], 2);
  EXPECT_EQ(view()["state"], "idle");
  EXPECT_EQ(ledger_.cursors.at("a"), 4u);
}

TEST_F(NotifierTest, ANewReceiverBeginsWithWhatHappensFromNowOn) {
  add();
  add();
  start();
  EXPECT_THAT(transport_.posts, IsEmpty());
  EXPECT_EQ(ledger_.cursors.at("a"), 2u) << "at once, so that nothing is missed over a restart";
  add();
  turn();
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":3})"));
}

TEST_F(NotifierTest, AfterARestartTheUnansweredIsRepeatedUnderTheSameId) {
  start();
  add();
  add();
  turn();
  answer(200);
  ASSERT_EQ(transport_.posts.size(), 2u);
  const Post second = transport_.posts.back();
  later(seconds(5));
  start();
  ASSERT_EQ(transport_.posts.size(), 1u);
  EXPECT_EQ(transport_.posts[0].body, second.body);
  EXPECT_EQ(header(transport_.posts[0], "Clusterctl-Delivery"),
            header(second, "Clusterctl-Delivery"));
  answer(200);
  start();
  EXPECT_THAT(transport_.posts, IsEmpty());
}

TEST_F(NotifierTest, IdsDifferByEventReceiverAndFleet) {
  receivers_.push_back(receiver("b"));
  start();
  add();
  add();
  turn();
  ASSERT_EQ(transport_.posts.size(), 2u);
  turn({{transport_.posts[0].ticket, 200, ""}, {transport_.posts[1].ticket, 200, ""}});
  ASSERT_EQ(transport_.posts.size(), 4u);
  std::set<std::string> ids;
  for (const Post& post : transport_.posts) ids.insert(header(post, "Clusterctl-Delivery"));
  EXPECT_EQ(ids.size(), 4u);
}

TEST_F(NotifierTest, IsSignedOverTimestampAndBodyAtEveryAttempt) {
  start();
  add();
  turn();
  answer(503);
  later(seconds(1));
  turn();
  ASSERT_EQ(transport_.posts.size(), 2u);
  for (const Post& post : transport_.posts) {
    const std::string timestamp = header(post, "Clusterctl-Timestamp");
    EXPECT_EQ(header(post, "Clusterctl-Signature"),
              "v1=" + hmac_sha256_hex("0123456789abcdef", timestamp + "." + post.body));
    EXPECT_EQ(header(post, "Clusterctl-Event"), "job.ended");
    for (const std::string& line : post.headers)
      EXPECT_THAT(line, Not(HasSubstr("0123456789abcdef")));
  }
  EXPECT_NE(header(transport_.posts[0], "Clusterctl-Timestamp"),
            header(transport_.posts[1], "Clusterctl-Timestamp"));
  EXPECT_EQ(header(transport_.posts[1], "Clusterctl-Attempt"), "2");
}

TEST_F(NotifierTest, WaitsTwiceAsLongAfterEachFailureUpToALimit) {
  options_.max_delay = seconds(6);
  start();
  add();
  turn();
  EXPECT_EQ(answer(500), seconds(1));
  later(milliseconds(999));
  EXPECT_EQ(turn(), milliseconds(1));
  EXPECT_EQ(transport_.posts.size(), 1u);
  later(milliseconds(1));
  turn();
  EXPECT_EQ(transport_.posts.size(), 2u);
  for (const int expected : {2, 4, 6, 6}) {
    EXPECT_EQ(answer(0), seconds(expected));
    later(seconds(expected));
    turn();
  }
  EXPECT_EQ(view()["failures"], 5);
  EXPECT_EQ(view()["error"], "no route");
  answer(200);
  EXPECT_EQ(view()["error"], "");
  add();
  turn();
  EXPECT_EQ(answer(302), seconds(1)) << "a redirect is a failure, and the count begins anew";
}

TEST_F(NotifierTest, ChanceShortensADelayByAtMostItsHalf) {
  options_.chance = [] { return 1.0; };
  start();
  add();
  turn();
  EXPECT_EQ(answer(500), milliseconds(500));
}

TEST_F(NotifierTest, GivesUpAfterSoManyAttemptsAndGoesOn) {
  options_.max_attempts = 2;
  start();
  add();
  add();
  turn();
  answer(500);
  later(seconds(1));
  turn();
  answer(500);
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":1})", R"({"seq":1})", R"({"seq":2})"));
  EXPECT_EQ(view()["dropped"], 1);
  EXPECT_EQ(ledger_.cursors.at("a"), 1u);
}

TEST_F(NotifierTest, GivesUpWhatIsTooOldAlsoAfterARestart) {
  start();
  add();
  turn();
  answer(500);
  later(std::chrono::hours(25));
  add();
  turn();
  EXPECT_EQ(transport_.posts.back().body, R"({"seq":2})");
  EXPECT_EQ(view()["dropped"], 1);
}

TEST_F(NotifierTest, AFullQueueLosesItsOldest) {
  options_.queue = 3;
  start();
  for (int i = 0; i < 5; ++i) add();
  turn();
  EXPECT_EQ(view()["pending"], 3);
  EXPECT_EQ(view()["dropped"], 2);
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":3})"));
  // The one under way is not taken from under its answer.
  add();
  turn();
  EXPECT_EQ(view()["dropped"], 3);
  answer(200);
  answer(200);
  answer(200);
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":3})", R"({"seq":5})", R"({"seq":6})"));
  EXPECT_EQ(view()["pending"], 0);
}

TEST_F(NotifierTest, EventsThatAreNoLongerKeptAreCounted) {
  ledger_.cursors["a"] = 0;
  for (int i = 0; i < 10; ++i) add();
  source_.forgotten = 6;
  start();
  EXPECT_EQ(view()["dropped"], 6);
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":7})"));
}

TEST_F(NotifierTest, WhatNothingIsKnownOfIsLeftOut) {
  start();
  add();
  add();
  source_.unknown = 1;
  turn();
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":2})"));
  EXPECT_EQ(view()["dropped"], 1);
}

TEST_F(NotifierTest, OneReceiverDoesNotWaitForAnother) {
  receivers_.push_back(receiver("b"));
  start();
  add();
  turn();
  ASSERT_EQ(transport_.posts.size(), 2u);
  add();
  turn({{transport_.posts[1].ticket, 200, ""}});
  ASSERT_EQ(transport_.posts.size(), 3u);
  EXPECT_THAT(transport_.posts[2].url, HasSubstr("//b."));
  EXPECT_EQ(view(0)["pending"], 2);
  EXPECT_EQ(view(1)["delivered"], 1);
}

TEST_F(NotifierTest, ADiskThatIsFullOnlyCostsTheMemoryOfARestart) {
  start();
  ledger_.broken = true;
  add();
  turn();
  answer(200);
  EXPECT_EQ(view()["delivered"], 1);
  ledger_.broken = false;
  add();
  turn();
  answer(200);
  EXPECT_EQ(ledger_.cursors.at("a"), 2u);
}

TEST_F(NotifierTest, EventsThatNobodyWantsDoNotWriteEachTime) {
  start();
  const int before = ledger_.saves;
  for (int i = 0; i < 400; ++i) {
    add("node.updated");
    turn();
  }
  EXPECT_EQ(ledger_.saves, before);
  for (int i = 0; i < 200; ++i) add("node.updated");
  turn();
  EXPECT_EQ(ledger_.saves, before + 1) << "else the cursor would fall out of what is kept";
}

TEST_F(NotifierTest, AStoreFromABackupIsBehindTheCursor) {
  ledger_.cursors["a"] = 900;
  add();
  start();
  add();
  turn();
  EXPECT_THAT(bodies(), ElementsAre(R"({"seq":2})"));
}

TEST_F(NotifierTest, ShowsNoSecretAndNoPath) {
  start();
  add();
  turn();
  answer(500);
  const std::string shown = dump_json(notifier_->view());
  EXPECT_THAT(shown, Not(HasSubstr("very-secret-path")));
  EXPECT_THAT(shown, Not(HasSubstr("0123456789abcdef")));
  ASSERT_EQ(notifier_->problems().size(), 1u);
  EXPECT_THAT(notifier_->problems()[0].message, HasSubstr("answered 500"));
  EXPECT_THAT(notifier_->problems()[0].hint, Not(HasSubstr("very-secret-path")));
}

}  // namespace
}  // namespace clusterctl::notify
