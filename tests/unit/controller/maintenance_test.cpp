// maintenance-enter, maintenance-exit and reboot through the whole controller.
#include <gmock/gmock.h>

#include "controller/mortal_test.h"

namespace clusterctl::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MaintenanceTest : public MortalTest {
 public:
  MaintenanceTest() {
    add_four();
    add("w2", "10.0.0.12", "service-worker");
    const auto job = run({{"kind", "commission"}, {"nodes", {"m1", "m2", "m3", "w1", "w2"}}});
    EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
    runs_.prepared.clear();
  }

  // What is true of the node: its state, what the scheduler has, what was applied, whether it
  // stands aside.
  std::string truth(const std::string& name) {
    const fleet::Node n = node(name);
    std::string out = lifecycle(name) + " " + runs_.scheduler[name] + " " +
                      std::string(fleet::word(n.status.applied->availability));
    if (runs_.aside[name]) out += " aside";
    if (n.status.maintenance) out += " for " + n.status.maintenance->owner;
    return out;
  }
  static Json body(const std::string& kind, const std::string& name) {
    return {{"kind", kind}, {"nodes", {name}}};
  }

  // The power fails at every point at which something is stored, with and without the runs. Then
  // the node is either in service as it was, or out of it with a record; and there is a way on.
  static void crash_everywhere(const std::string& kind, bool power_cut) {
    const auto prepare = [&](MaintenanceTest& w) {
      if (kind != "maintenance-exit") return;
      EXPECT_EQ(w.run(body("maintenance-enter", "m1")).state, job::State::kSucceeded);
    };
    const auto look = [](MaintenanceTest& w, const job::Job& ended, const std::string& where) {
      w.settle(ended, where);
    };
    die_at_every_point<MaintenanceTest>(body(kind, "m1"), power_cut, prepare, look);
  }

  void settle(const job::Job& ended, const std::string& where) {
    const std::string in = "Allocated active active",
                      out = "Maintenance drain drain aside for test";
    const bool done = ended.state == job::State::kSucceeded;
    const std::string now = truth("m1");
    EXPECT_FALSE(has("m1", "NeedsVerification")) << where;
    if (done) {
      EXPECT_EQ(now, ended.kind == "maintenance-enter" ? out : in) << where;
    }
    EXPECT_TRUE(now == in || now == out) << where << ": " << now << " (" << ended.error << ")";
    if (now == out) {
      const auto exit = run(body("maintenance-exit", "m1"));
      EXPECT_EQ(exit.state, job::State::kSucceeded) << where << ": " << exit.error;
      EXPECT_EQ(truth("m1"), in) << where;
    }
  }
};

TEST_F(MaintenanceTest, EnterAtEveryPoint) {
  crash_everywhere("maintenance-enter", false);
  crash_everywhere("maintenance-enter", true);
}
TEST_F(MaintenanceTest, ExitAtEveryPoint) {
  crash_everywhere("maintenance-exit", false);
  crash_everywhere("maintenance-exit", true);
}
TEST_F(MaintenanceTest, RebootAtEveryPoint) {
  crash_everywhere("reboot", false);
  crash_everywhere("reboot", true);
}

TEST_F(MaintenanceTest, AWishRefusedBecauseOfItIsTakenBack) {
  runs_.hold = true;  // both wait for this one
  ASSERT_TRUE(submit(body("verify", "w1")));
  const auto enter = submit(body("maintenance-enter", "w1"));
  ASSERT_TRUE(enter) << enter.error().line();
  const auto drain = submit(body("drain", "w1"));
  ASSERT_TRUE(drain) << drain.error().line();
  runs_.hold = false;
  EXPECT_EQ(wait(enter->id).state, job::State::kSucceeded);
  EXPECT_EQ(wait(drain->id).reason, "in_maintenance");
  EXPECT_EQ(run(body("maintenance-exit", "w1")).state, job::State::kSucceeded);
  EXPECT_EQ(truth("w1"), "Allocated active active");
  EXPECT_EQ(node("w1").spec.availability, fleet::Availability::kActive);
}

TEST_F(MaintenanceTest, OverdueIsSaidOnceAndNothingElseHappens) {
  ASSERT_EQ(run({{"kind", "maintenance-enter"}, {"nodes", {"w1"}}, {"for", "2h"}}).state,
            job::State::kSucceeded);
  const auto overdue = [&] {
    const auto page = c().events().since(0, 10000);
    return std::count_if(page.events.begin(), page.events.end(), [](const Event& e) {
      return e.type == "node.maintenance_overdue" && e.node == "w1";
    });
  };
  clock_.advance(std::chrono::minutes(119));
  restart();
  c().stop();
  EXPECT_EQ(overdue(), 0);
  clock_.advance(std::chrono::minutes(2));
  start();
  while (!has("w1", "MaintenanceOverdue")) std::this_thread::yield();
  restart();
  ASSERT_EQ(run(body("verify", "w1")).state, job::State::kSucceeded);
  EXPECT_EQ(overdue(), 1);
  EXPECT_EQ(truth("w1"), "Maintenance drain drain for test");
  ASSERT_EQ(run(body("maintenance-exit", "w1")).state, job::State::kSucceeded);
  EXPECT_FALSE(has("w1", "MaintenanceOverdue"));
}

TEST_F(MaintenanceTest, ALaterEndIsNotOverdue) {
  Json enter = body("maintenance-enter", "w1");
  enter["for"] = "1h";
  ASSERT_EQ(run(enter).state, job::State::kSucceeded);
  clock_.advance(std::chrono::minutes(61));
  while (!has("w1", "MaintenanceOverdue")) std::this_thread::yield();
  enter["for"] = "2h";
  ASSERT_EQ(run(enter).state, job::State::kSucceeded);
  EXPECT_FALSE(has("w1", "MaintenanceOverdue"));
  restart();
  EXPECT_FALSE(has("w1", "MaintenanceOverdue"));
  clock_.advance(std::chrono::minutes(121));
  while (!has("w1", "MaintenanceOverdue")) std::this_thread::yield();  // said anew
}

TEST_F(MaintenanceTest, AMajorityThatWasLostMeanwhileIsNoticedBeforeAnythingIsChanged) {
  Json members = runs_.scripts["observe"].members["etcd"];
  members[2]["reachable"] = false;
  runs_.scripts["observe"].members["etcd"] = members;
  const auto job = run(body("maintenance-enter", "m1"));
  EXPECT_EQ(job.reason, "quorum_lost") << job.error;
  EXPECT_THAT(job.error, HasSubstr("nothing was changed"));
  EXPECT_EQ(truth("m1"), "Allocated active active");
  EXPECT_THAT(runs_.stages(), ElementsAre("observe"));
}

TEST_F(MaintenanceTest, AnOrderToRebootKeepsItsNameOverAResume) {
  runs_.scripts["verify"].interrupted = true;
  const auto first = run(body("reboot", "w1"));
  ASSERT_EQ(first.state, job::State::kInterrupted);
  const auto order = [&] {
    return runs_.inventory("reboot").at("all").at("vars").at("clusterctl_order");
  };
  EXPECT_EQ(order(), first.id);
  runs_.scripts["verify"].interrupted = false;
  job::Selection what;
  what.resume = true;
  const auto next = c().continue_job(first.id, what, false, "test");
  ASSERT_TRUE(next) << next.error().line();
  EXPECT_EQ(wait(next->job->id).state, job::State::kSucceeded);
  EXPECT_EQ(order(), first.id);
  EXPECT_EQ(truth("w1"), "Allocated active active");
}

TEST_F(MaintenanceTest, AHandoverThatFailsIsPutBackWithTheDrain) {
  runs_.scripts["handover"].failing["m1"] = "ucarp: nobody took it";
  const auto job = run(body("maintenance-enter", "m1"));
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_EQ(truth("m1"), "Allocated active active");
  EXPECT_TRUE(has("m1", "Failed"));
  EXPECT_THAT(runs_.stages(),
              ElementsAre("observe", "drain", "handover", "observe", "undo", "undo"));
}

}  // namespace
}  // namespace clusterctl::controller
