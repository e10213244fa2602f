// Runs the whole command line against a fake daemon and a fake terminal.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cli/app.h"
#include "fakes/fake_rest.h"
#include "fakes/fake_terminal.h"

namespace clusterctl::cli {

// Lends the test's fake to the program, which owns what it connects with.
class Borrowed final : public client::RestClient {
 public:
  explicit Borrowed(fakes::FakeRest& rest) : rest_(rest) {}
  Result<client::Response> send(const client::Request& r) override { return rest_.send(r); }
  Status stream(const client::Request& r, const client::Receive& receive,
                const client::KeepGoing& keep) override {
    return rest_.stream(r, receive, keep);
  }
  std::string server() const override { return rest_.server(); }

 private:
  fakes::FakeRest& rest_;
};

class CliTest : public testing::Test {
 protected:
  int run(std::vector<std::string> args) {
    terminal.out_text.clear();
    terminal.err_text.clear();
    const Dependencies d{terminal, env, "0.1.0",
                         [this](client::Settings s) {
                           settings = std::move(s);
                           return std::make_unique<Borrowed>(rest);
                         },
                         timer};
    return cli::run(args, d);
  }
  const std::string& out() const { return terminal.out_text; }
  const std::string& err() const { return terminal.err_text; }

  static Json node(const std::string& name, const std::string& lifecycle = "Allocated",
                   const std::string& role = "worker") {
    return Json{{"id", "id" + name + "aaaaaaaa"},
                {"name", name},
                {"role", role},
                {"spec",
                 {{"addr", "10.0.0." + name.substr(1)},
                  {"host_group", "service-" + (role == "manager" ? std::string("master") : role)},
                  {"capabilities", Json::array()},
                  {"availability", "active"},
                  {"acceptance", "accepted"}}},
                {"status",
                 {{"lifecycle", lifecycle},
                  {"presence", "Discovered"},
                  {"services", Json::object()},
                  {"conditions", Json::array()}}}};
  }
  static Json job(const std::string& state = "queued", const std::string& kind = "commission") {
    return Json{
        {"id", "01job"},
        {"kind", kind},
        {"title", kind + " 2 nodes"},
        {"state", state},
        {"nodes", {{{"name", "n1"}, {"state", "pending"}}, {{"name", "n2"}, {"state", "pending"}}}},
        {"stages", Json::array()},
        {"warnings", Json::array()}};
  }

  fakes::FakeRest rest;
  fakes::FakeTerminal terminal;
  fakes::FakeTimer timer;
  client::Settings settings;
  std::map<std::string, std::string> env;
};

}  // namespace clusterctl::cli
