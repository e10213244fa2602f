// Rendered runs given to programs: the stand-in for ansible-playbook, and the real one.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "ansible/events.h"
#include "ansible/render.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"

namespace clusterctl::ansible {

class AnsibleRig : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ansible-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    top = name;
    input.run_id = "r1";
    input.cluster_name = "lab";
    input.run_dir = (top / "run").string();
    input.pki_dir = (top / "pki").string();
    for (const char* folder : {"run", "double", "playbooks", "bin"})
      fs::create_directory(top / folder);
    env = {{"PATH", (top / "bin").string() + ":/usr/bin:/bin"},
           {"HOME", top.string()},
           {"LANG", "C.UTF-8"},
           {"ANSIBLE_NOCOLOR", "1"},
           {"CLUSTERCTL_DOUBLE_DIR", (top / "double").string()},
           {"CLUSTERCTL_RUN_DIR", (top / "run").string()},
           {"ANSIBLE_LOCALHOST_WARNING", "False"}};
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }

  Host& add(const std::string& name, fleet::Role role,
            std::vector<std::string> services = {"base", "docker", "etcd", "swarm"}) {
    Host host;
    host.id = "id" + name;
    host.name = name;
    host.addr = "127.0.0.1";
    host.target = true;
    host.host_group = role == fleet::Role::kManager ? "service-master" : "service-worker";
    host.role = role;
    host.services = std::move(services);
    input.hosts.push_back(host);
    return input.hosts.back();
  }
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) {
    std::error_code ignored;
    fs::create_directories((top / name).parent_path(), ignored);
    std::ofstream(top / name) << text;
    ::chmod((top / name).c_str(), mode);
  }
  // The run's files and its command line, as the run room makes it.
  Output run(const std::string& program, const std::string& playbook,
             std::vector<std::string> more = {}) {
    const auto files = render(input);
    EXPECT_TRUE(files) << files.error().line();
    write("run/inventory.json", files ? files->inventory : "");
    write("run/known_hosts", files ? files->known_hosts : "");
    std::vector<std::string> argv = {program, "-i", (top / "run/inventory.json").string()};
    if (files && !files->vars.empty()) {
      write("run/vars.json", files->vars);
      argv.insert(argv.end(), {"-e", "@" + (top / "run/vars.json").string()});
    }
    argv.insert(argv.end(), more.begin(), more.end());
    if (!playbook.empty()) argv.push_back((top / "playbooks" / playbook).string());
    ProcessSpec spec;
    spec.argv = argv;
    spec.env = env;
    const auto output = run_process(spec, std::chrono::seconds(100));
    EXPECT_TRUE(output) << output.error().line();
    return output.value_or(Output{});
  }
  RunResult result() const {
    RunResult out;
    for (const std::string& line :
         split(read_file(top / "run/events.jsonl").value_or(""), '\n', true))
      out.feed_line(line);
    return out;
  }

  fs::path top;
  RunInput input;
  std::map<std::string, std::string> env;
};

}  // namespace clusterctl::ansible
