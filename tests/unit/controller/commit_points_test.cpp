// The store fails at every commit of a cluster's life, one after another, in each way a store can
// fail. Whatever happens: what was accepted comes to a true end, no run is started twice, and no
// event is lost.
#include <gmock/gmock.h>

#include <set>

#include "controller/fixture.h"
#include "fakes/failing_store.h"
#include "fakes/sanitized.h"

namespace clusterctl::controller {
namespace {

using fakes::FailingStore;
using fakes::Way;

class CommitPoints : public ControllerTest {
 protected:
  // One life with the failure at commit `at`; false when it has fewer commits.
  bool live(Way way, int at) {
    controller_->stop();
    controller_.reset();
    runs_.forget();
    durable_ = store::make_memory_store();
    auto failing = std::make_unique<FailingStore>(*durable_, way, at);
    failing_ = failing.get();
    store_ = std::move(failing);
    if (!begin()) revive();
    for (const std::string service : {"etcd", "swarm"}) set_members(service, {"m1", "m2", "m3"});
    insist([&] { return c().set_globals({{"service_vip", "10.0.0.100"}}, true).has_value(); });
    for (int i = 1; i <= 3; ++i) insist_on_node("m" + std::to_string(i), i, "service-master");
    insist_on_node("w1", 11, "service-worker");
    const std::string all = insist_on_job(kCommissionAll, "first");
    const std::string gone = insist_on_job({{"kind", "decommission"}, {"nodes", {"w1"}}}, "second");
    insist([&] { return removed("w1"); });
    const bool hit = failing_ ? failing_->hit() : true;

    EXPECT_EQ(c().current(all)->state, job::State::kSucceeded) << c().current(all)->error;
    EXPECT_EQ(c().current(gone)->state, job::State::kSucceeded) << c().current(gone)->error;
    for (const std::string name : {"m1", "m2", "m3"}) EXPECT_EQ(lifecycle(name), "Allocated");
    EXPECT_EQ(c().state()->jobs.size(), 2U) << "a request repeated with its key is one job";
    once_each();
    numbered();
    return hit;
  }

  bool begin() {
    controller_ =
        std::make_unique<Controller>(Deps{*store_, runs_, *catalog_, clock_, ids_, {}, settings_});
    return controller_->start().has_value();
  }

  // The daemon has died: another one on what is durable.
  void revive() {
    controller_->stop();
    controller_.reset();
    failing_ = nullptr;
    store_ = std::make_unique<FailingStore>(*durable_, Way::kRefusedOnce, 0);
    ASSERT_TRUE(begin());
  }
  bool died() const { return failing_ && failing_->dead(); }

  // What a client does: again, until it is done.
  void insist(const std::function<bool()>& request) {
    while (!request()) {
      if (died()) revive();
    }
    if (died()) {
      revive();
      insist(request);
    }
  }
  void insist_on_node(const std::string& name, int number, const std::string& group) {
    insist([&] {
      if (c().fleet()->by_name(name)) return true;
      return c()
          .add_node(
              {{"name", name},
               {"spec", {{"addr", "10.0.0." + std::to_string(number)}, {"host_group", group}}}})
          .has_value();
    });
  }
  std::string insist_on_job(const Json& body, const std::string& key) {
    std::string id;
    insist([&] {
      const auto accepted = c().create_job(body, "test", key);
      if (!accepted) return false;
      id = accepted->job->id;
      for (;;) {
        const auto job = c().current(id);
        if (!job || died()) return false;
        if (job::is_final(job->state)) return true;
        std::this_thread::yield();
      }
    });
    return id;
  }
  bool removed(const std::string& name) {
    const fleet::Node* node = c().fleet()->by_name(name);
    return !node || c().remove_node(node->id, std::nullopt).has_value();
  }

  void once_each() {
    std::map<std::string, std::string> stage_of;
    for (const run::RunSpec& spec : runs_.prepared) stage_of[spec.id] = spec.job + " " + spec.stage;
    std::set<std::string> runs, stages;
    for (const std::string& id : runs_.started) {
      EXPECT_TRUE(runs.insert(id).second) << "run started twice: " << stage_of[id];
      EXPECT_TRUE(stages.insert(stage_of[id]).second) << "done twice: " << stage_of[id];
    }
  }
  void numbered() {
    uint64_t expected = 1;
    for (const Event& e : c().events().since(0, 100000).events) EXPECT_EQ(e.seq, expected++);
  }

  void every_point(Way way) {
    int at = 1;
    while (live(way, at)) {
      ASSERT_FALSE(HasFailure()) << "with the failure at commit " << at;
      at += fakes::kSanitized ? 4 : 1;
    }
    EXPECT_GT(at, 15) << "a life has more commits than that";
    RecordProperty("commit_points", at - 1);
  }

  std::unique_ptr<store::Store> durable_;
  FailingStore* failing_ = nullptr;  // until the daemon died
};

TEST_F(CommitPoints, AStoreThatRefusesForAMoment) {
  every_point(Way::kRefusedOnce);
}
TEST_F(CommitPoints, ADaemonThatDiesBeforeItsCommit) {
  every_point(Way::kDiesBefore);
}
TEST_F(CommitPoints, ADaemonThatDiesAfterItsCommit) {
  every_point(Way::kDiesAfterWriting);
}

}  // namespace
}  // namespace clusterctl::controller
