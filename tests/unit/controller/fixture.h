// A controller in this process: real planner, memory store, runs without processes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controller/controller.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_runs.h"
#include "fleet/conditions.h"
#include "fleet/words.h"
#include "job/job_json.h"

namespace clusterctl::controller {

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() : ids_(clock_), store_(store::make_memory_store()) {
    auto catalog = catalog::Catalog::read(SOURCE_DIR "/playbooks/catalog.yml");
    EXPECT_TRUE(catalog) << catalog.error().line();
    catalog_ = std::make_unique<catalog::Catalog>(std::move(*catalog));
    settings_.store_retry = std::chrono::milliseconds(1);
    start();
  }

  void start() {
    controller_ =
        std::make_unique<Controller>(Deps{*store_, runs_, *catalog_, clock_, ids_, {}, settings_});
    const auto started = controller_->start();
    EXPECT_TRUE(started) << started.error().line();
  }
  void restart() {
    controller_->stop();
    controller_.reset();
    start();
  }

  Controller& c() { return *controller_; }

  void add(const std::string& name, const std::string& addr, const std::string& group) {
    const auto node =
        c().add_node({{"name", name}, {"spec", {{"addr", addr}, {"host_group", group}}}});
    ASSERT_TRUE(node) << node.error().line();
  }
  // Three masters m1 to m3 and a worker w1, with a virtual address; nothing commissioned.
  void add_four() {
    ASSERT_TRUE(c().set_globals({{"service_vip", "10.0.0.100"}}, true));
    for (int i = 1; i <= 3; ++i)
      add("m" + std::to_string(i), "10.0.0." + std::to_string(i), "service-master");
    add("w1", "10.0.0.11", "service-worker");
    for (const std::string service : {"etcd", "swarm"}) set_members(service, {"m1", "m2", "m3"});
  }
  void set_members(const std::string& service, const std::vector<std::string>& names) {
    Json members = Json::array();
    for (const std::string& name : names) {
      members.push_back({{"id", service + "-" + name},
                         {"name", name},
                         {"addr", ""},
                         {"role", service == "swarm" ? "manager" : "member"},
                         {"reachable", true},
                         {"leader", name == names.front()}});
    }
    runs_.scripts["verify"].members[service] = members;
    runs_.scripts["observe"].members[service] = members;
  }

  Result<job::Job> submit(const Json& body) {
    auto accepted = c().create_job(body, "test", "");
    if (!accepted) return fail(accepted.error());
    return *accepted->job;
  }
  job::Job wait(const std::string& id) {
    for (;;) {
      const auto job = c().current(id);
      if (job && job::is_final(job->state)) return *job;
      std::this_thread::yield();
    }
  }
  job::Job run(const Json& body) {
    auto job = submit(body);
    EXPECT_TRUE(job) << job.error().line() << describe(job.error());
    return job ? wait(job->id) : job::Job{};
  }
  static std::string describe(const Error& e) {
    std::string out;
    for (const Problem& p : e.problems) out += "\n  " + p.node + ": " + p.code + ": " + p.message;
    return out;
  }

  fleet::Node node(const std::string& name) { return *c().fleet()->by_name(name); }
  std::string lifecycle(const std::string& name) {
    return std::string(fleet::word(node(name).status.lifecycle));
  }
  bool has(const std::string& name, const std::string& condition) {
    return fleet::has_condition(node(name).status, condition);
  }

  FakeClock clock_;
  RandomIds ids_;
  std::unique_ptr<store::Store> store_;
  fakes::FakeRuns runs_;
  Settings settings_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<Controller> controller_;
};

inline const Json kCommissionAll{{"kind", "commission"}, {"nodes", {"m1", "m2", "m3", "w1"}}};

}  // namespace clusterctl::controller
