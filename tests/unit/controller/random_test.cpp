// Everything at once, by chance: whatever is asked for, in whatever order, no two jobs work on a
// node at the same time, no stage runs twice, and every job comes to an end.
#include <gmock/gmock.h>

#include <random>

#include "controller/fixture.h"

namespace clusterctl::controller {
namespace {

// Who works where. Told by the runs' threads.
class Watch {
 public:
  explicit Watch(std::function<std::string(const std::string& job)> kind)
      : kind_(std::move(kind)) {}

  void begin(const run::RunSpec& spec) {
    const std::string kind = kind_(spec.job);
    // A survivor that is asked to forget somebody, or is looked at, is shared.
    const bool looks = kind == "check" || kind == "verify" || kind == "observe" ||
                       spec.stage == "forget" || spec.stage == "observe";
    MutexLock lock(mutex_);
    if (!stages_.insert({spec.job, spec.id}).second) return;  // taken over after a restart
    for (const std::string& node : fakes::FakeRuns::targets(spec)) {
      for (const auto& [run, other] : at_[node]) {
        if (run != spec.id && !(looks && other))
          overlaps_.push_back(node + ": " + kind + " " + spec.stage);
      }
      at_[node][spec.id] = looks;
    }
  }
  void end(const run::RunSpec& spec) {
    MutexLock lock(mutex_);
    for (auto& [node, runs] : at_) runs.erase(spec.id);
  }
  std::vector<std::string> overlaps() const {
    MutexLock lock(mutex_);
    return overlaps_;
  }

 private:
  std::function<std::string(const std::string&)> kind_;
  mutable Mutex mutex_;
  std::set<std::pair<std::string, std::string>> stages_ GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, bool>> at_ GUARDED_BY(mutex_);
  std::vector<std::string> overlaps_ GUARDED_BY(mutex_);
};

class RandomTest : public ControllerTest, public testing::WithParamInterface<unsigned> {
 protected:
  size_t any(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(chance_); }

  Json request() {
    static const std::vector<std::string> kKinds{"commission", "decommission", "check", "verify"};
    Json body{{"kind", kKinds[any(kKinds.size())]}, {"nodes", Json::array()}};
    for (size_t i = 1 + any(2); i > 0; --i) body["nodes"].push_back(names_[any(names_.size())]);
    if (body["kind"] == "decommission" && any(3) == 0) body["force"] = body["powered_off"] = true;
    if (body["kind"] == "commission" && any(3) == 0) body["keep_on_failure"] = true;
    return body;
  }

  void step() {
    const std::string job = jobs_.empty() ? "" : jobs_[any(jobs_.size())];
    switch (any(8)) {
      case 0:
      case 1:
      case 2:
        if (auto accepted = submit(request())) jobs_.push_back(accepted->id);
        break;
      case 3:
        (void)c().pause_job(job);
        break;
      case 4:
        (void)c().resume_job(job);
        break;
      case 5:
        (void)c().cancel_job(job, any(2) == 0);
        break;
      case 6:
        if (auto accepted =
                c().continue_job(job, {any(2) == 0, true, any(2) == 0}, any(4) == 0, "test")) {
          if (accepted->job) jobs_.push_back(accepted->job->id);
        }
        break;
      case 7:
        if (any(6) == 0) restart();
        break;
    }
  }

  bool all_ended() {
    bool all = true;
    for (const std::string& id : jobs_) {
      const auto job = c().current(id);
      if (job->state == job::State::kPaused || job->pause.requested) (void)c().resume_job(id);
      all = all && job::is_final(job->state);
    }
    return all;
  }

  std::mt19937 chance_{GetParam()};
  std::vector<std::string> names_{"m1", "m2", "m3", "w1", "w2", "w3", "w4"};
  std::vector<std::string> jobs_;
};

TEST_P(RandomTest, NothingOverlapsAndEverythingEnds) {
  settings_.max_parallel_runs = 3;
  restart();
  add_four();
  for (int i = 2; i <= 4; ++i)
    add("w" + std::to_string(i), "10.0.0.1" + std::to_string(i), "service-worker");
  run(kCommissionAll);
  Watch watch([this](const std::string& job) { return c().current(job)->kind; });
  runs_.on_begin = [&](const run::RunSpec& spec) { watch.begin(spec); };
  runs_.on_end = [&](const run::RunSpec& spec) { watch.end(spec); };
  for (int i = 0; i < 150; ++i) {
    step();
    runs_.hold = any(3) == 0;
  }
  runs_.hold = false;
  while (!all_ended()) std::this_thread::yield();
  EXPECT_THAT(watch.overlaps(), testing::IsEmpty());
  EXPECT_GT(jobs_.size(), 10U);
  for (const std::string& id : jobs_) {
    const auto job = *c().current(id);
    std::set<std::string> runs;
    for (const job::StageStatus& s : job.stages) {
      EXPECT_TRUE(is_final(s.state)) << id << " " << s.def.name;
      EXPECT_TRUE(s.run.empty() || runs.insert(s.run).second) << id << " " << s.def.name;
    }
    EXPECT_FALSE(job.pause.requested);
    EXPECT_EQ(job.state == job::State::kSucceeded, job.reason.empty()) << id;
  }
  const auto fleet = c().fleet();
  for (const auto& [id, node] : fleet->nodes) {
    const std::string lifecycle(fleet::word(node.status.lifecycle));
    EXPECT_TRUE(lifecycle != "Provisioning" && lifecycle != "Maintenance") << node.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTest, testing::Range(1U, 9U));

}  // namespace
}  // namespace clusterctl::controller
