// drain, activate and update through the whole controller, with a scheduler in memory.
#include <gmock/gmock.h>

#include <random>

#include "controller/mortal_test.h"

namespace clusterctl::controller {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RollingTest : public MortalTest {
 public:
  RollingTest() {
    add_four();
    for (int i = 2; i <= 4; ++i)
      add("w" + std::to_string(i), "10.0.0.1" + std::to_string(i), "service-worker");
    const auto job =
        run({{"kind", "commission"}, {"nodes", {"m1", "m2", "m3", "w1", "w2", "w3", "w4"}}});
    EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
    runs_.prepared.clear();
  }

  std::string wanted(const std::string& name) {
    return std::string(fleet::word(node(name).spec.availability));
  }
  std::string applied(const std::string& name) {
    return std::string(fleet::word(node(name).status.applied->availability));
  }
  // "w1 drain→active undone"
  std::vector<std::string> ledger(const job::Job& job) {
    std::vector<std::string> out;
    for (const job::UndoEntry& e : job.ledger)
      out.push_back(job.outcome(e.node)->name + " " + e.from + "→" + e.to + " " +
                    std::string(job::to_word(e.state)));
    return out;
  }
  std::string state_of(const job::Job& job, const std::string& name) {
    return std::string(job::to_word(job.outcome(node(name).id)->state));
  }
  static Json update(std::vector<std::string> nodes) {
    return {{"kind", "update"}, {"nodes", nodes}, {"vars", {{"docker_version", "24"}}}};
  }

  // The power fails at every point at which something is stored, with and without the runs dying
  // too. As soon as the daemon is back, the nodes have the availability they had.
  static void crash_everywhere(const Json& body, const std::vector<std::string>& nodes,
                               bool power_cut) {
    const auto look = [&](RollingTest& w, const job::Job& ended, const std::string& where) {
      const bool aim = ended.kind == "drain" && ended.state == job::State::kSucceeded;
      for (const std::string& name : nodes) {
        const std::string expected = aim ? "drain" : "active";
        const auto seen = w.runs_.scheduler.find(name);
        EXPECT_EQ(seen->second, expected) << name << " after " << where << ": " << ended.error;
        EXPECT_EQ(w.applied(name), expected) << where;
        EXPECT_EQ(w.wanted(name), expected) << where;
        EXPECT_FALSE(w.has(name, "NeedsVerification")) << where;
        const std::string now = w.lifecycle(name);
        EXPECT_TRUE(now == "Allocated" || (now == "Maintenance" && w.has(name, "Failed")))
            << name << " is " << now << " after " << where;
        if (ended.state == job::State::kSucceeded) {
          EXPECT_EQ(now, "Allocated") << where;
        }
      }
    };
    die_at_every_point<RollingTest>(
        body, power_cut, [](RollingTest&) {}, look);
  }
};

TEST_F(RollingTest, ADrainIsWantedThenApplied) {
  const auto queued = submit({{"kind", "drain"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(queued);
  const auto job = wait(queued->id);
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_EQ(runs_.scheduler["w1"], "drain");
  EXPECT_EQ(wanted("w1"), "drain");
  EXPECT_EQ(applied("w1"), "drain");
  EXPECT_EQ(lifecycle("w1"), "Allocated");
  EXPECT_THAT(ledger(job), ElementsAre("w1 active→drain kept"));

  EXPECT_EQ(run({{"kind", "activate"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  EXPECT_EQ(runs_.scheduler["w1"], "active");
  EXPECT_EQ(applied("w1"), "active");
}

TEST_F(RollingTest, ADrainThatFailsIsPutBack) {
  runs_.scripts["drain"].failing["w1"] = "swarm: not drained after 600 s: service web";
  const auto job = run({{"kind", "drain"}, {"nodes", {"w1", "w2"}}, {"max_unavailable", 2}});
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_THAT(job.error, HasSubstr("service web"));
  EXPECT_THAT(runs_.stages(), ElementsAre("drain", "undo"));
  EXPECT_THAT(runs_.targets("undo"), ElementsAre("w1"));
  EXPECT_EQ(runs_.scheduler["w1"], "active");
  EXPECT_EQ(runs_.scheduler["w2"], "drain") << "the other one is what was asked for";
  EXPECT_EQ(wanted("w1"), "active");
  EXPECT_EQ(applied("w1"), "active");
  EXPECT_EQ(applied("w2"), "drain");
  EXPECT_THAT(ledger(job), ElementsAre("w1 active→drain undone", "w2 active→drain kept"));
  EXPECT_FALSE(has("w1", "NeedsVerification"));
}

TEST_F(RollingTest, EvidenceIsKeptWhenAsked) {
  runs_.scripts["drain"].failing["w1"] = "swarm: stuck";
  const auto job = run({{"kind", "drain"}, {"nodes", {"w1"}}, {"keep_on_failure", true}});
  EXPECT_THAT(runs_.stages(), ElementsAre("drain"));
  EXPECT_EQ(runs_.scheduler["w1"], "drain");
  EXPECT_EQ(wanted("w1"), "drain");
  EXPECT_EQ(applied("w1"), "active") << "it was never seen to be drained";
  EXPECT_THAT(ledger(job), ElementsAre("w1 active→drain kept"));
  EXPECT_EQ(job.outcome(node("w1").id)->cleanup, "kept");
}

TEST_F(RollingTest, WhatCannotBePutBackIsSaid) {
  runs_.scripts["drain"].failing["w1"] = "swarm: stuck";
  runs_.scripts["undo"].failing["w1"] = "swarm: no leader";
  const auto job = run({{"kind", "drain"}, {"nodes", {"w1"}}});
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_THAT(job.error, HasSubstr("stuck"));
  EXPECT_THAT(runs_.stages(), ElementsAre("drain", "undo", "undo", "undo"))
      << "through each of the managers once";
  EXPECT_THAT(ledger(job), ElementsAre("w1 active→drain failed"));
  EXPECT_TRUE(has("w1", "NeedsVerification"));
  const fleet::Node w1 = node("w1");
  const auto* c = fleet::find_condition(w1.status, "NeedsVerification");
  EXPECT_THAT(c->reason, HasSubstr("`clusterctl node activate w1`"));
}

TEST_F(RollingTest, ADrainThatWaitsBehindAnUpdateDoesNotHinderIt) {
  runs_.hold = true;
  const auto first = submit(update({"w1", "w2", "w3"}));
  ASSERT_TRUE(first) << first.error().line();
  while (runs_.starts == 0) std::this_thread::yield();
  const auto drain = submit({{"kind", "drain"}, {"nodes", {"w2"}}});
  ASSERT_TRUE(drain) << drain.error().line();
  EXPECT_EQ(wanted("w2"), "drain");
  runs_.hold = false;
  EXPECT_EQ(wait(first->id).state, job::State::kSucceeded) << wait(first->id).error;
  EXPECT_EQ(wait(drain->id).state, job::State::kSucceeded) << wait(drain->id).error;
  EXPECT_EQ(applied("w2"), "drain");
}

TEST_F(RollingTest, WishesThatAreTakenBackLeaveThoseOfOthersAlone) {
  runs_.hold = true;
  const auto holder = submit({{"kind", "verify"}, {"nodes", {"w1"}}});
  while (runs_.starts == 0) std::this_thread::yield();
  const auto ask = [&](const std::string& kind) {
    const auto job = submit({{"kind", kind}, {"nodes", {"w1"}}});
    EXPECT_TRUE(job) << job.error().line();
    return job->id;
  };
  const auto take_back = [&](const std::string& id) { EXPECT_TRUE(c().cancel_job(id, false)); };

  const std::string first = ask("activate"), second = ask("drain");
  take_back(first);
  EXPECT_EQ(wanted("w1"), "drain") << "somebody else wants that";
  const std::string third = ask("activate");
  EXPECT_EQ(wanted("w1"), "active");
  take_back(second);
  EXPECT_EQ(wanted("w1"), "active");
  const std::string fourth = ask("drain");
  take_back(third);
  EXPECT_EQ(wanted("w1"), "drain");
  take_back(fourth);
  EXPECT_EQ(wanted("w1"), "active") << "as it was before all of them";

  const std::string last = ask("drain");
  runs_.hold = false;
  EXPECT_EQ(wait(last).state, job::State::kSucceeded);
  EXPECT_EQ(wanted("w1"), "drain");
  EXPECT_EQ(applied("w1"), "drain");
}

TEST_F(RollingTest, AWishTakenBackWhileAnEarlierOneIsMadeTrue) {
  ASSERT_EQ(run({{"kind", "drain"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  runs_.starts = 0;
  runs_.hold = true;
  const auto activate = submit({{"kind", "activate"}, {"nodes", {"w1"}}});
  while (runs_.starts == 0) std::this_thread::yield();
  const auto drain = submit({{"kind", "drain"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(drain) << drain.error().line();
  ASSERT_TRUE(c().cancel_job(drain->id, false));
  EXPECT_EQ(wanted("w1"), "active") << "it is drained still, but not for long";
  runs_.hold = false;
  EXPECT_EQ(wait(activate->id).state, job::State::kSucceeded);
  EXPECT_EQ(wanted("w1"), "active");
  EXPECT_EQ(applied("w1"), "active");
}

TEST_F(RollingTest, WhatAJobOnlyFoundIsNotTakenBackWithIt) {
  runs_.hold = true;  // all wait for this one
  ASSERT_TRUE(submit({{"kind", "verify"}, {"nodes", {"w1"}}}));
  const auto update = submit({{"kind", "promote"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(update) << update.error().line();
  const auto pause = submit({{"kind", "pause"}, {"nodes", {"w1"}}});
  ASSERT_TRUE(pause) << pause.error().line();
  runs_.scripts["check"].failing["w1"] = "base: no disk";
  runs_.hold = false;
  EXPECT_EQ(wait(update->id).state, job::State::kFailed);
  EXPECT_EQ(wait(pause->id).state, job::State::kSucceeded);
  EXPECT_EQ(wanted("w1"), "pause");
  EXPECT_EQ(applied("w1"), "pause");
  EXPECT_EQ(node("w1").spec.host_group, "service-worker");
}

// Whatever is asked for, fails and is cancelled: in the end nothing is wanted that is not true.
TEST_F(RollingTest, WhenAllIsOverWhatIsWantedIsWhatIs) {
  std::mt19937 chance{7};
  const auto any = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(chance); };
  const std::vector<std::string> kinds{"drain", "pause", "activate", "maintenance-enter", "reboot"};
  for (int round = 0; round < 50; ++round) {
    runs_.hold = true;
    std::vector<std::string> jobs;
    for (int i = 0; i < 6; ++i) {
      const Json body{{"kind", kinds[static_cast<size_t>(any(5))]},
                      {"nodes", {any(4) ? "w1" : "w2"}}};
      const auto job = submit(body);
      if (job) jobs.push_back(job->id);
      if (job && any(2)) (void)c().cancel_job(jobs.back(), any(2) != 0);
      if (job && any(4) == 0) (void)c().cancel_job(jobs.front(), any(2) != 0);
    }
    runs_.hold = false;
    for (const std::string& id : jobs) wait(id);
    for (const std::string name : {"w1", "w2"}) {
      if (node(name).status.maintenance) {
        ASSERT_EQ(run({{"kind", "maintenance-exit"}, {"nodes", {name}}}).state,
                  job::State::kSucceeded);
      }
      ASSERT_EQ(wanted(name), applied(name)) << name << " in round " << round;
      ASSERT_EQ(runs_.scheduler[name], applied(name)) << name << " in round " << round;
    }
  }
}

TEST_F(RollingTest, AnUpdateRollsAndEveryNodeComesBack) {
  const auto job = run(update({"m1", "w1", "w2"}));
  EXPECT_EQ(job.state, job::State::kSucceeded) << job.error;
  EXPECT_THAT(runs_.stages(),
              ElementsAre("check", "observe", "drain", "site", "verify", "restore", "drain", "site",
                          "verify", "restore", "drain", "site", "verify", "restore"));
  for (const std::string name : {"m1", "w1", "w2"}) {
    EXPECT_EQ(lifecycle(name), "Allocated") << name;
    EXPECT_EQ(runs_.scheduler[name], "active") << name;
    EXPECT_EQ(applied(name), "active") << name;
  }
  EXPECT_THAT(ledger(job), ElementsAre("m1 active→drain undone", "w1 active→drain undone",
                                       "w2 active→drain undone"));
  // Converging and verifying know that the node is drained: else they would put it back to work.
  for (const run::RunSpec& spec : runs_.prepared) {
    if (spec.stage != "site" && spec.stage != "verify") continue;
    const Json hosts = Json::parse(spec.files.inventory)["all"]["children"]["clusterctl_targets"];
    for (const auto& [host, vars] : hosts["hosts"].items())
      EXPECT_EQ(vars["clusterctl_availability"], "drain") << spec.stage << " " << host;
  }
}

TEST_F(RollingTest, ADrainThatWaitsBehindAnUpdateChangesNothingOfIt) {
  std::string second;
  runs_.scripts["check"].before = [&] {
    if (!second.empty()) return;
    const auto drain = submit({{"kind", "drain"}, {"nodes", {"w1"}}});
    second = drain ? drain->id : "refused";
    EXPECT_EQ(wanted("w1"), "drain");
  };
  EXPECT_EQ(run({{"kind", "update"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
  EXPECT_EQ(wait(second).state, job::State::kSucceeded);
  for (const run::RunSpec& spec : runs_.prepared) {
    if (spec.stage != "site") continue;
    const Json hosts = Json::parse(spec.files.inventory)["all"]["children"]["clusterctl_targets"];
    EXPECT_EQ(hosts["hosts"]["w1"]["clusterctl_availability"], "active");
  }
  EXPECT_EQ(applied("w1"), "drain");
  EXPECT_EQ(runs_.scheduler["w1"], "drain");
}

TEST_F(RollingTest, OnlyTheNodesOfTheBatchAreInMaintenance) {
  std::vector<std::string> seen;
  runs_.scripts["site"].before = [&] {
    for (const std::string name : {"w1", "w2", "w3"}) seen.push_back(lifecycle(name));
  };
  run(update({"w1", "w2", "w3"}));
  EXPECT_THAT(seen, ElementsAre("Maintenance", "Allocated", "Allocated", "Allocated", "Maintenance",
                                "Allocated", "Allocated", "Allocated", "Maintenance"));
}

TEST_F(RollingTest, StopsAtTheFirstFailure) {
  runs_.scripts["site"].failing["w2"] = "docker: the package is held";
  const auto job = run(update({"w1", "w2", "w3"}));
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_EQ(job.reason, "node_failed");
  EXPECT_EQ(job.error, "w2: docker: do it: the package is held (1 done, 1 failed, 1 untouched)");
  EXPECT_EQ(state_of(job, "w1"), "succeeded");
  EXPECT_EQ(state_of(job, "w2"), "failed");
  EXPECT_EQ(state_of(job, "w3"), "untouched");
  EXPECT_EQ(lifecycle("w1"), "Allocated");
  EXPECT_EQ(lifecycle("w2"), "Maintenance");
  EXPECT_TRUE(has("w2", "Failed"));
  EXPECT_EQ(lifecycle("w3"), "Allocated");
  EXPECT_FALSE(has("w3", "Failed"));
  EXPECT_EQ(runs_.scheduler["w2"], "active") << "the ledger is replayed";
  EXPECT_THAT(runs_.targets("undo"), ElementsAre("w2"));

  // The way on: again. What is out of use already costs nothing.
  runs_.scripts["site"] = {};
  EXPECT_EQ(run(update({"w2"})).state, job::State::kSucceeded);
  EXPECT_EQ(lifecycle("w2"), "Allocated");
  EXPECT_FALSE(has("w2", "Failed"));
}

TEST_F(RollingTest, MaxFailuresGoesOnAsLongAsTheBudgetAllows) {
  runs_.scripts["verify"].unhealthy["w1"] = "docker";
  Json body = update({"w1", "w2", "w3", "w4"});
  body["max_failures"] = 2;
  const auto spent = run(body);
  EXPECT_EQ(spent.reason, "budget");
  EXPECT_THAT(spent.error, AllOf(HasSubstr("1 of 4 is unavailable (w1)"),
                                 HasSubstr("(0 done, 1 failed, 3 untouched)")));

  runs_.scripts["verify"] = {};
  set_members("swarm", {"m1", "m2", "m3"});
  set_members("etcd", {"m1", "m2", "m3"});
  EXPECT_EQ(run(update({"w1"})).state, job::State::kSucceeded);
  runs_.scripts["verify"].unhealthy["w1"] = "docker";
  runs_.prepared.clear();
  body["max_unavailable"] = 2;
  const auto job = run(body);
  EXPECT_EQ(job.state, job::State::kFailed);
  EXPECT_EQ(lifecycle("w1"), "Maintenance");
  for (const std::string name : {"w2", "w3", "w4"}) {
    EXPECT_EQ(state_of(job, name), "succeeded") << name;
    EXPECT_EQ(lifecycle(name), "Allocated") << name;
  }
  std::vector<size_t> sizes;
  for (const job::StageStatus& s : job.stages) {
    if (s.def.name == "site") sizes.push_back(s.nodes.size());
  }
  EXPECT_THAT(sizes, ElementsAre(2, 1, 1)) << "the failed one takes its part of the budget";
}

TEST_F(RollingTest, ANodeThatCannotBeDrainedIsUntouched) {
  runs_.scripts["drain"].failing["w1"] = "swarm: not drained after 600 s";
  const auto job = run(update({"w1", "w2"}));
  EXPECT_EQ(job.error,
            "w1: swarm: do it: not drained after 600 s; nothing was changed (0 done, 1 "
            "failed, 1 untouched)");
  EXPECT_EQ(lifecycle("w1"), "Allocated") << "nothing had changed yet";
  EXPECT_EQ(runs_.scheduler["w1"], "active");
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "observe", "drain", "undo"));
}

TEST_F(RollingTest, AFindingOfTheCheckStopsBeforeTheFirstChange) {
  runs_.scripts["check"].problems["w2"] = "no space left";
  const auto job = run(update({"w1", "w2"}));
  EXPECT_EQ(job.reason, "check_failed");
  EXPECT_THAT(job.error, HasSubstr("nothing was changed (0 done, 1 failed, 1 untouched)"));
  EXPECT_THAT(runs_.stages(), ElementsAre("check", "observe"));
  EXPECT_EQ(lifecycle("w2"), "Allocated");
}

TEST_F(RollingTest, MajoritiesAreLookedAtBeforeEachManager) {
  int observed = 0;
  runs_.scripts["observe"].before = [&] {
    if (++observed == 1) runs_.scripts["observe"].unreachable.insert("m3");
  };
  const auto job = run(update({"m1", "m2"}));
  EXPECT_EQ(job.reason, "quorum_lost");
  EXPECT_EQ(state_of(job, "m1"), "succeeded");
  EXPECT_EQ(state_of(job, "m2"), "untouched");
  EXPECT_EQ(lifecycle("m2"), "Allocated");
  EXPECT_THAT(job.error, AllOf(HasSubstr("m2"), testing::Not(HasSubstr("nothing was changed"))));
}

TEST_F(RollingTest, ACancelPutsBackWhatWasDrained) {
  runs_.scripts["site"].cancelled = true;
  const auto job = run(update({"w1", "w2"}));
  EXPECT_EQ(job.state, job::State::kCancelled);
  EXPECT_EQ(runs_.scheduler["w1"], "active");
  EXPECT_EQ(lifecycle("w1"), "Maintenance") << "it was touched";
  EXPECT_EQ(lifecycle("w2"), "Allocated");
  EXPECT_THAT(ledger(job), ElementsAre("w1 active→drain undone"));
}

TEST_F(RollingTest, WhatWasOutOfUseStaysSoWhenNothingWasChanged) {
  runs_.scripts["site"].failing["w1"] = "docker: broken";
  run(update({"w1"}));
  ASSERT_EQ(lifecycle("w1"), "Maintenance");
  runs_.scripts["site"] = {};
  runs_.scripts["drain"].failing["w1"] = "swarm: stuck";
  run(update({"w1"}));
  EXPECT_EQ(lifecycle("w1"), "Maintenance") << "it is no better than before";
  EXPECT_EQ(run({{"kind", "decommission"}, {"nodes", {"w1"}}}).state, job::State::kSucceeded);
}

const Json kDrain{{"kind", "drain"}, {"nodes", {"w1", "m1"}}};

TEST(Crash, ADrainAtEveryPoint) {
  RollingTest::crash_everywhere(kDrain, {"w1", "m1"}, false);
}
TEST(Crash, ADrainAtEveryPointWithItsRuns) {
  RollingTest::crash_everywhere(kDrain, {"w1", "m1"}, true);
}
TEST(Crash, AnUpdateAtEveryPoint) {
  RollingTest::crash_everywhere(RollingTest::update({"m1", "w1"}), {"m1", "w1"}, false);
}
TEST(Crash, AnUpdateAtEveryPointWithItsRuns) {
  RollingTest::crash_everywhere(RollingTest::update({"m1", "w1"}), {"m1", "w1"}, true);
}

}  // namespace
}  // namespace clusterctl::controller
