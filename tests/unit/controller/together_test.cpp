// Jobs that start together, of every kind that asks the budget: whatever they are and whoever goes
// first, what is stored never has more workers out of use than may be.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <set>

#include "controller/fixture.h"
#include "fakes/sanitized.h"

namespace clusterctl::controller {
namespace {

constexpr int kWorkers = 5;
constexpr int kRounds = fakes::kSanitized ? 6 : 40;

// Counts, commit by commit, how many workers are out of use.
class CountingStore final : public store::Store {
 public:
  explicit CountingStore(std::unique_ptr<store::Store> inner) : inner_(std::move(inner)) {}
  Result<std::vector<store::Record>> load(std::string_view prefix) override {
    return inner_->load(prefix);
  }
  Result<uint64_t> commit(const std::vector<store::Operation>& batch) override {
    auto done = inner_->commit(batch);
    if (!done) return done;
    for (const store::Operation& op : batch) {
      if (op.key.rfind("nodes/", 0) == 0 && op.value) note(Json::parse(*op.value));
    }
    const int away = static_cast<int>(away_.size());
    if (away > worst) worst = away;
    return done;
  }
  std::atomic<int> worst = 0;
  int away() const { return static_cast<int>(away_.size()); }

 private:
  void note(const Json& node) {
    const std::string name = node.at("name");
    if (name[0] != 'w') return;
    const Json& status = node.at("status");
    const Json applied = status.value("applied", Json());
    const bool out = status.at("lifecycle") == "Maintenance" ||
                     (applied.is_object() && applied.value("availability", "") == "drain");
    out ? (void)away_.insert(name) : (void)away_.erase(name);
  }
  std::unique_ptr<store::Store> inner_;
  std::set<std::string> away_;  // only touched by commits, which are serialised
};

class TogetherTest : public ControllerTest {
 protected:
  TogetherTest() {
    controller_->stop();
    controller_.reset();
    auto counting = std::make_unique<CountingStore>(std::move(store_));
    counting_ = counting.get();
    store_ = std::move(counting);
    settings_.max_parallel_runs = kWorkers + 2;
    start();
    for (const char* stage : {"check", "observe", "site", "verify", "pause", "drain", "reboot",
                              "restore", "undo", "activate", "return", "handover", "takeback"})
      runs_.scripts[stage];  // threads only read them
    add_four();
    for (int i = 2; i <= kWorkers; ++i)
      add("w" + std::to_string(i), "10.0.0.1" + std::to_string(i), "service-worker");
    Json nodes{"m1", "m2", "m3"};
    for (const std::string& w : workers()) nodes.push_back(w);
    EXPECT_EQ(run({{"kind", "commission"}, {"nodes", nodes}}).state, job::State::kSucceeded);
  }
  static std::vector<std::string> workers() {
    std::vector<std::string> out;
    for (int i = 1; i <= kWorkers; ++i) out.push_back("w" + std::to_string(i));
    return out;
  }
  void bring_back() {
    for (const std::string& w : workers()) {
      if (lifecycle(w) == "Maintenance") {
        const bool stays = node(w).status.maintenance.has_value();
        run({{"kind", stays ? "maintenance-exit" : "update"}, {"nodes", {w}}});
      }
      if (node(w).status.applied->availability == fleet::Availability::kDrain)
        run({{"kind", "activate"}, {"nodes", {w}}});
    }
    ASSERT_EQ(counting_->away(), 0);
    counting_->worst = 0;
  }

  CountingStore* counting_ = nullptr;
};

TEST_F(TogetherTest, NoMoreWorkersAreOutOfUseThanMayBe) {
  std::mt19937 chance(7);
  const auto any = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(chance); };
  const std::vector<std::string> kinds{"maintenance-enter", "reboot", "update", "drain"};
  int succeeded = 0, refused = 0, full = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int may = 1 + any(3);
    runs_.hold = true;
    const auto blocker = submit({{"kind", "verify"}, {"nodes", workers()}});
    ASSERT_TRUE(blocker) << blocker.error().line();
    std::vector<std::string> all = workers(), jobs, titles;
    std::shuffle(all.begin(), all.end(), chance);
    while (!all.empty()) {
      const std::string& kind = kinds[static_cast<size_t>(any(4))];
      Json nodes = Json::array();
      for (int n = 1 + any(2); n > 0 && !all.empty(); --n, all.pop_back())
        nodes.push_back(all.back());
      const auto job =
          submit({{"kind", kind}, {"nodes", nodes}, {"max_unavailable", std::to_string(may)}});
      if (!job) continue;  // more than may be at once, or a drain before it
      jobs.push_back(job->id);
      titles.push_back(job->title);
    }
    runs_.hold = false;
    for (const std::string& id : jobs) {
      const job::Job job = wait(id);
      EXPECT_TRUE(job.state == job::State::kSucceeded || job.reason == "budget")
          << job.title << ": " << job.error;
      ++(job.state == job::State::kSucceeded ? succeeded : refused);
    }
    wait(blocker->id);
    EXPECT_LE(counting_->worst, may) << "round " << round << ": " << testing::PrintToString(titles);
    full += counting_->worst == may;
    bring_back();
  }
  EXPECT_GT(succeeded, kRounds / 2);
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_GT(full, kRounds / 4) << "the budget is used, not only kept";
}

}  // namespace
}  // namespace clusterctl::controller
