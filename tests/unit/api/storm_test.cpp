// Everything at once against one controller: readers, writers, followers, running jobs, a notifier.
// What it asserts is little; it is for the thread sanitizer, and for a deadlock to show as a
// timeout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "api/http_engine.h"
#include "api/resources.h"
#include "api/service.h"
#include "base/strings.h"
#include "controller/notices.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_runs.h"
#include "fakes/temp_dir.h"
#include "notify/notify_thread.h"
#include "raw_client.h"

namespace clusterctl::api {
namespace {

constexpr int kReaders = 8, kWriters = 4, kFollowers = 8;
constexpr int kReads = 60, kWrites = 15;

// FakeRuns for several steppers at once, with files that followers can read.
class StormRuns final : public run::Runs {
 public:
  explicit StormRuns(fs::path dir) : dir_(std::move(dir)) {}

  Status prepare(const run::RunSpec& spec) override {
    if (auto made = make_dirs(dir(spec.id)); !made) return made;
    const std::lock_guard lock(mutex_);
    return fake_.prepare(spec);
  }
  Status start(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    return fake_.start(id);
  }
  run::RunState look(const std::string& id) const override {
    const std::lock_guard lock(mutex_);
    return fake_.look(id);
  }
  run::RunState follow(const std::string& id, std::stop_token stop,
                       const std::function<void(std::string_view)>& on_line) override {
    std::vector<std::string> lines;
    run::RunState state;
    {
      const std::lock_guard lock(mutex_);
      state = fake_.follow(id, stop, [&](std::string_view line) { lines.emplace_back(line); });
    }
    std::ofstream events(dir(id) / "events.jsonl"), log(dir(id) / "output.log");
    for (const std::string& line : lines) {
      events << line << std::endl;
      log << "line " << line.size() << std::endl;
      on_line(line);
    }
    return state;
  }
  Status cancel(const std::string& id, bool now) override {
    const std::lock_guard lock(mutex_);
    return fake_.cancel(id, now);
  }
  std::optional<Time> last_output(const std::string&) const override { return std::nullopt; }
  Status scrub(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    return fake_.scrub(id);
  }
  Result<std::string> read_known_hosts(const std::string&) const override { return std::string(); }
  fs::path dir(const std::string& id) const override { return dir_ / id; }

 private:
  const fs::path dir_;
  mutable std::mutex mutex_;
  fakes::FakeRuns fake_;
};

// Every third post fails.
class StormTransport final : public notify::Transport {
 public:
  void start(notify::Post post) override {
    const std::lock_guard lock(mutex_);
    done_.push_back({post.ticket, ++posts_ % 3 == 0 ? 500 : 200, ""});
  }
  std::vector<notify::Outcome> wait(std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::min(limit, std::chrono::milliseconds(1000)),
                      [&] { return woken_ || !done_.empty(); });
    woken_ = false;
    return std::exchange(done_, {});
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<notify::Outcome> done_;
  int posts_ = 0;
  bool woken_ = false;
};

class StormTest : public testing::Test {
 protected:
  void SetUp() override {
    auto catalog = catalog::Catalog::read(SOURCE_DIR "/playbooks/catalog.yml");
    ASSERT_TRUE(catalog) << catalog.error().line();
    catalog_ = std::make_unique<catalog::Catalog>(std::move(*catalog));
    controller::Settings settings;
    settings.max_parallel_runs = 4;
    controller_ = std::make_unique<controller::Controller>(
        controller::Deps{*store_, runs_, *catalog_, clock_, ids_, {}, settings});
    ASSERT_TRUE(controller_->start());
    start_notifier();
    add_routes(router_, *controller_, {}, notifier_.get());
    engine_ = std::make_unique<HttpEngine>(EngineOptions{},
                                           [this](Request& r) { return service_.handle(r); });
    ASSERT_TRUE(engine_->listen_unix(socket(), ""));
    ASSERT_TRUE(engine_->start());
  }
  void TearDown() override {
    engine_->stop();
    controller_->stop();
    controller_->events().unsubscribe(subscription_);
    thread_.reset();
  }

  void start_notifier() {
    notify::Receiver receiver;
    receiver.name = "r";
    receiver.url = "http://r/";
    receiver.events = {"job.ended", "node.presence", "node.lifecycle"};
    notify::Options options;
    options.first_delay = std::chrono::milliseconds(1);
    notices_ = std::make_unique<controller::Notices>(*controller_);
    notifier_ = std::make_unique<notify::Notifier>(std::move(options), std::vector{receiver},
                                                   *notices_, transport_, ledger_, clock_);
    ASSERT_TRUE(notifier_->start());
    thread_ = std::make_unique<notify::NotifyThread>(*notifier_, transport_);
    subscription_ = controller_->events().subscribe([this] { thread_->wake(); });
  }

  fs::path socket() const { return dir_.path() / "s"; }
  RawClient client() const { return RawClient::unix_socket(socket()); }

  static RawAnswer get(RawClient& client, const std::string& path) {
    return client.ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  static RawAnswer send(RawClient& client, const std::string& method, const std::string& path,
                        const Json& body) {
    const std::string text = dump_json(body);
    return client.ask(
        fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    method, path, text.size(), text));
  }
  static void add(RawClient& c, const std::string& name, const std::string& addr,
                  const std::string& group) {
    const auto answer = send(c, "POST", "/v1/nodes",
                             {{"name", name}, {"spec", {{"addr", addr}, {"host_group", group}}}});
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  static std::string submit(RawClient& c, const Json& request) {
    const auto answer = send(c, "POST", "/v1/jobs", request);
    EXPECT_TRUE(answer.status == 202 || answer.status == 409 || answer.status == 422)
        << answer.status << answer.body;
    return answer.status == 202 ? Json::parse(answer.body)["id"].get<std::string>() : "";
  }

  void read_all() const {
    static const std::vector<std::string> kPaths = {
        "/v1/nodes",         "/v1/nodes?lifecycle=Allocated",
        "/v1/nodes/m1",      "/v1/jobs",
        "/v1/jobs/last",     "/v1/status",
        "/v1/inventory",     "/v1/events?since=3",
        "/v1/globals",       "/v1/notifications",
        "/v1/jobs/last/log", "/readyz"};
    RawClient c = client();
    for (int i = 0; i < kReads; ++i) {
      const std::string& path = kPaths[static_cast<size_t>(i) % kPaths.size()];
      if (path.ends_with("/log")) {  // a stream has a connection of its own
        RawClient own = client();
        own.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_TRUE(own.receive_all().starts_with("HTTP/1.1 200"));
        continue;
      }
      EXPECT_EQ(get(c, path).status, 200) << path;
    }
  }

  void write_all(int writer) const {
    RawClient c = client();
    const std::string name = fmt::format("w{}", writer);
    std::string job;
    for (int i = 0; i < kWrites; ++i) {
      EXPECT_EQ(send(c, "PATCH", "/v1/nodes/" + name,
                     {{"spec", {{"labels", {{"round", std::to_string(i)}}}}}})
                    .status,
                200);
      switch (i % 5) {
        case 0:
          job = submit(c, {{"kind", "commission"}, {"nodes", {name}}});
          break;
        case 1:
          submit(c, {{"kind", "verify"}, {"nodes", {"m1"}}});
          break;
        case 2:
          send(c, "PATCH", "/v1/globals", {{"vars", {{"x" + name, i}}}});
          break;
        case 3:
          submit(c, {{"kind", "decommission"}, {"nodes", {name}}});
          break;
        default:
          if (!job.empty()) send(c, "POST", "/v1/jobs/" + job + "/cancel", {{"now", i % 2 == 0}});
      }
    }
  }

  // Follows until the marker (fleet events) or the end of the job, and gives what came.
  std::string follow(const std::string& path, const std::string& until) const {
    RawClient c = client();
    c.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(c.receive_until(until)) << path;
    return c.buffer();
  }

  static std::vector<uint64_t> seqs(const std::string& stream) {
    std::vector<uint64_t> out;
    for (const std::string& line : split(stream, '\n')) {
      if (line.starts_with("id: ")) out.push_back(std::stoull(line.substr(4)));
    }
    return out;
  }

  // How many jobs ended how, when all have.
  std::map<std::string, int> ended_jobs() const {
    for (;;) {
      std::map<std::string, int> out;
      bool all = true;
      const auto now = controller_->state();
      for (const auto& [id, job] : now->jobs) {
        all = all && job::is_final(job->state);
        // What became impossible while it waited is refused when its turn comes.
        const bool refused = job->state == job::State::kFailed && !job->started;
        ++out[refused ? "refused" : std::string(job::to_word(job->state))];
      }
      if (all) return out;
      std::this_thread::yield();
    }
  }

  class MemoryLedger final : public notify::Ledger {
   public:
    Result<notify::Cursors> load() override { return notify::Cursors{}; }
    Status save(const notify::Cursors&) override { return {}; }
  };

  TempDir dir_;
  FakeClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  StormRuns runs_{dir_.path() / "runs"};
  StormTransport transport_;
  MemoryLedger ledger_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<controller::Controller> controller_;
  std::unique_ptr<controller::Notices> notices_;
  std::unique_ptr<notify::Notifier> notifier_;
  std::unique_ptr<notify::NotifyThread> thread_;
  uint64_t subscription_ = 0;
  Router router_;
  Auth auth_{AuthOptions{}};
  Service service_{router_, auth_};
  std::unique_ptr<HttpEngine> engine_;
};

TEST_F(StormTest, ReadersWritersFollowersAndJobsAtOnce) {
  RawClient c = client();
  add(c, "m1", "10.0.0.1", "service-master");
  for (int i = 0; i < kWriters; ++i)
    add(c, fmt::format("w{}", i), fmt::format("10.0.1.{}", i + 1), "service-worker");
  const std::string first = submit(c, {{"kind", "commission"}, {"nodes", {"m1"}}});
  ASSERT_FALSE(first.empty());
  follow("/v1/jobs/" + first + "/events?follow=true", "event: end");

  std::atomic<int> writing{kWriters};
  std::vector<std::string> followed(kFollowers);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kReaders; ++i) threads.emplace_back([this] { read_all(); });
    for (int i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        write_all(i);
        if (--writing == 0) {
          RawClient last = client();
          add(last, "marker", "10.0.2.1", "service-worker");
        }
      });
    }
    for (int i = 0; i < kFollowers; ++i) {
      threads.emplace_back([&, i] {
        const size_t n = static_cast<size_t>(i);
        if (i % 2 == 0) {
          followed[n] = follow("/v1/events?follow=true", "\"node\":\"marker\"");
          return;
        }
        RawClient ask = client();
        const std::string job = Json::parse(get(ask, "/v1/jobs/last").body)["id"];
        const std::string what = i % 4 == 1 ? "log" : "events";
        followed[n] = follow("/v1/jobs/" + job + "/" + what + "?follow=true", "event: end");
      });
    }
  }
  for (int i = 0; i < kFollowers; i += 2) {
    const auto numbers = seqs(followed[static_cast<size_t>(i)]);
    for (size_t k = 0; k < numbers.size(); ++k) ASSERT_EQ(numbers[k], k + 1);
  }
  EXPECT_GT(seqs(followed[0]).size(), static_cast<size_t>(kWriters * kWrites));
  const auto jobs = ended_jobs();
  EXPECT_GT(jobs.at("succeeded"), kWriters) << "jobs ran meanwhile";
  EXPECT_EQ(jobs.count("failed") + jobs.count("interrupted"), 0u);
}

}  // namespace
}  // namespace clusterctl::api
