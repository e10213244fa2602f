// A state directory, the real program as shim, and the stand-in for ansible-playbook with its
// orders.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "run/run_dir.h"
#include "run/runs.h"

namespace clusterctl::run {

// Waits for something another process does; no test depends on how long it takes.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::seconds limit = std::chrono::seconds(30)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline bool alive(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}

class Rig : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/run-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    top = name;
    for (const char* folder : {"playbooks", "double"}) fs::create_directory(top / folder);
    for (const char* playbook :
         {"check", "observe", "site", "verify", "cleanup", "forget", "show"}) {
      std::ofstream(top / "playbooks" / (std::string(playbook) + ".yml")) << "---\n";
    }
    settings.runs_dir = top / "runs";
    settings.playbooks = top / "playbooks";
    settings.ansible_config = top / "ansible.cfg";
    settings.ansible_playbook = SOURCE_DIR "/tests/doubles/ansible-playbook";
    settings.self = BINARY_DIR "/bin/clusterctl";
    settings.extra_env = {{"CLUSTERCTL_DOUBLE_DIR", (top / "double").string()}};
    runs = make_runs(settings);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }

  void orders(const Json& control) { std::ofstream(top / "double" / "control.json") << control; }
  void remake() { runs = make_runs(settings); }

  static ansible::RunFiles files() {
    ansible::RunInput input;
    input.run_id = "r1";
    input.cluster_name = "lab";
    input.initiator = "n1";
    input.managers = {"n1"};
    input.run_dir = "/nowhere";
    input.pki_dir = "/nowhere/pki";
    ansible::Host host;
    host.id = "aaaabbbbcccc";
    host.name = "n1";
    host.addr = "10.0.0.1";
    host.target = true;
    host.host_group = "service-master";
    host.role = fleet::Role::kManager;
    host.services = {"base", "docker", "etcd", "swarm"};
    host.vars = {{"password", "S3cr3t!value"}};
    input.hosts = {host};
    input.request_vars = {{"token", "t0k3n \"quoted\""}};
    auto out = ansible::render(input);
    EXPECT_TRUE(out) << out.error().line();
    return out ? *out : ansible::RunFiles{};
  }
  static RunSpec spec(std::string id = "r1", std::string playbook = "site.yml") {
    return {std::move(id),       "job1",  "site",
            std::move(playbook), files(), {"S3cr3t!value", "t0k3n \"quoted\""}};
  }
  void begin(const std::string& id = "r1", const std::string& playbook = "site.yml") {
    auto ok = runs->prepare(spec(id, playbook));
    ASSERT_TRUE(ok) << ok.error().line();
    ok = runs->start(id);
    ASSERT_TRUE(ok) << ok.error().line();
  }
  RunState follow(const std::string& id = "r1") {
    lines.clear();
    return runs->follow(id, std::stop_token(),
                        [this](std::string_view line) { lines.emplace_back(line); });
  }
  RunDir files_of(const std::string& id = "r1") const { return RunDir{runs->dir(id)}; }
  std::string output(const std::string& id = "r1") const {
    return read_file(runs->dir(id) / "output.log", 1 << 30).value_or("");
  }
  Json started(const std::string& id = "r1") const {
    return parse_json(read_file(files_of(id).started()).value_or("null"), "started")
        .value_or(Json());
  }
  // What the double recorded of its n-th call.
  Json call(int number = 1, const std::string& playbook = "site") const {
    char name[64];
    std::snprintf(name, sizeof name, "%04d-%s", number, playbook.c_str());
    return parse_json(read_file(top / "double" / "calls" / name / "call.json").value_or("null"),
                      "call")
        .value_or(Json());
  }
  size_t calls() const {
    size_t out = 0;
    std::error_code ignored;
    for ([[maybe_unused]] const auto& entry :
         fs::directory_iterator(top / "double" / "calls", ignored))
      ++out;
    return out;
  }
  bool at_gate(const std::string& gate) {
    return eventually([&] { return fs::exists(top / "double" / (gate + ".waiting")); });
  }
  void open_gate(const std::string& gate) { std::ofstream(top / "double" / gate) << "open"; }

  fs::path top;
  Settings settings;
  std::unique_ptr<Runs> runs;
  std::vector<std::string> lines;
};

}  // namespace clusterctl::run
