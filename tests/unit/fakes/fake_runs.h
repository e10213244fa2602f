// Playbook runs without processes: a run ends at once with events made from its inventory, or as
// told per stage. Records what was asked.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/annotations.h"
#include "base/json.h"
#include "run/runs.h"

namespace clusterctl::fakes {

class FakeRuns final : public run::Runs {
 public:
  // What happens in the runs of a stage; everything else goes well.
  struct Script {
    std::map<std::string, std::string> failing;  // host -> "service: message"; it fails there
    std::set<std::string> unreachable;
    std::map<std::string, std::string> unhealthy;  // host -> service; its verify fact says so
    std::set<std::string> without_facts;
    std::map<std::string, std::string> problems;  // host -> message of a check finding
    bool interrupted = false;
    bool silent = false;  // exit 0 and no event at all
    int exit_code = 0;
    bool cancelled = false;
    std::function<void()> before;         // called when the run starts
    std::map<std::string, Json> members;  // service -> members of its fact, for managers
  };

  std::map<std::string, Script> scripts;  // by stage name
  std::vector<run::RunSpec> prepared;
  std::vector<std::string> started, scrubbed;
  std::vector<std::pair<std::string, bool>> cancelled;
  std::atomic<bool> hold = false;  // runs then last until it is taken back, or they are cancelled
  bool deaf = false;               // while held, only a cancel at once ends a run
  // Called from the runs' threads when a run begins (again, after a restart) and when it has ended.
  std::function<void(const run::RunSpec&)> on_begin, on_end;
  std::atomic<int> starts = 0;         // for a test that waits for one
  std::atomic<int64_t> last_sign = 0;  // what last_output() says, ms
  // What the scheduler has for each host: set by runs of site.yml and availability.yml as soon as
  // they start, whatever becomes of them. Read it while nothing runs.
  std::map<std::string, std::string> scheduler;

  std::map<std::string, bool> aside;  // set by runs of handover.yml, likewise

  // Everything that runs now is dead, without a result.
  void power_cut() {
    MutexLock lock(mutex_);
    for (auto& [id, phase] : phases_) {
      if (phase == run::Phase::kRunning) phase = run::Phase::kInterrupted;
    }
  }

  Status prepare(const run::RunSpec& spec) override {
    MutexLock lock(mutex_);
    prepared.push_back(spec);
    phases_[spec.id] = run::Phase::kPrepared;
    return {};
  }
  Status start(const std::string& id) override {
    const run::RunSpec spec = of(id);
    {
      MutexLock lock(mutex_);
      started.push_back(id);
      if (phases_[id] == run::Phase::kPrepared) {
        phases_[id] = run::Phase::kRunning;
        note_scheduler(spec);
      }
    }
    ++starts;
    return {};
  }
  run::RunState look(const std::string& id) const override {
    MutexLock lock(mutex_);
    const auto it = phases_.find(id);
    return {it == phases_.end() ? run::Phase::kUnknown : it->second, std::nullopt};
  }
  run::RunState follow(const std::string& id, std::stop_token stop,
                       const std::function<void(std::string_view)>& on_line) override {
    const run::RunSpec spec = of(id);
    Script script = scripts[spec.stage];
    if (look(id).phase == run::Phase::kInterrupted) return {run::Phase::kInterrupted, std::nullopt};
    if (script.before) script.before();
    if (on_begin) on_begin(spec);
    while (hold && !stop.stop_requested() && !was_cancelled(id)) std::this_thread::yield();
    if (stop.stop_requested()) return {run::Phase::kRunning, std::nullopt};
    if (was_cancelled(id)) script.cancelled = true;
    if (on_end) on_end(spec);
    if (!script.silent) emit(spec, script, on_line);
    end(id, script.interrupted ? run::Phase::kInterrupted : run::Phase::kFinished);
    if (script.interrupted) return {run::Phase::kInterrupted, std::nullopt};
    run::Exit exit;
    exit.code = script.exit_code;
    exit.cancelled = script.cancelled;
    return {run::Phase::kFinished, exit};
  }
  std::optional<Time> last_output(const std::string&) const override {
    return Time{std::chrono::milliseconds(last_sign.load())};
  }
  Status cancel(const std::string& id, bool now) override {
    MutexLock lock(mutex_);
    cancelled.emplace_back(id, now);
    return {};
  }
  bool asked_to_end(bool now) const {
    MutexLock lock(mutex_);
    return std::any_of(cancelled.begin(), cancelled.end(),
                       [&](const auto& c) { return c.second == now; });
  }
  Status scrub(const std::string& id) override {
    MutexLock lock(mutex_);
    scrubbed.push_back(id);
    return {};
  }
  Result<std::string> read_known_hosts(const std::string&) const override { return std::string(); }
  fs::path dir(const std::string& id) const override { return "/nonexistent/" + id; }

  // As new; nothing may be running.
  void forget() {
    scripts.clear();
    prepared.clear();
    started.clear();
    scrubbed.clear();
    cancelled.clear();
    phases_.clear();
    scheduler.clear();
    aside.clear();
    starts = 0;
  }

  std::vector<std::string> stages() const {
    std::vector<std::string> out;
    for (const run::RunSpec& spec : prepared) out.push_back(spec.stage);
    return out;
  }
  // Inventory of the latest run of a stage.
  Json inventory(const std::string& stage) const {
    for (auto it = prepared.rbegin(); it != prepared.rend(); ++it) {
      if (it->stage == stage) return Json::parse(it->files.inventory);
    }
    return Json();
  }
  std::vector<std::string> targets(const std::string& stage) const {
    return hosts_of(inventory(stage), "clusterctl_targets");
  }
  static std::vector<std::string> targets(const run::RunSpec& spec) {
    return hosts_of(Json::parse(spec.files.inventory), "clusterctl_targets");
  }

 private:
  run::RunSpec of(const std::string& id) const {
    MutexLock lock(mutex_);
    for (const run::RunSpec& spec : prepared) {
      if (spec.id == id) return spec;
    }
    throw std::logic_error("unknown run " + id);
  }
  void end(const std::string& id, run::Phase phase) {
    MutexLock lock(mutex_);
    phases_[id] = phase;
  }
  void note_scheduler(const run::RunSpec& spec) {
    if (spec.playbook == "handover.yml") note_handover(spec);
    if (spec.playbook != "site.yml" && spec.playbook != "availability.yml") return;
    const Json inventory = Json::parse(spec.files.inventory);
    for (const std::string& host : hosts_of(inventory, "clusterctl_targets"))
      scheduler[host] = availability_of(inventory, host);
  }
  void note_handover(const run::RunSpec& spec) {
    const Json inventory = Json::parse(spec.files.inventory);
    for (const std::string& host : hosts_of(inventory, "clusterctl_targets")) {
      const Json& hosts = inventory.at("all").at("children").at("clusterctl_targets").at("hosts");
      aside[host] = !hosts.at(host).at("clusterctl_in_service").get<bool>();
    }
  }
  bool was_cancelled(const std::string& id) const {
    MutexLock lock(mutex_);
    return std::any_of(cancelled.begin(), cancelled.end(),
                       [&](const auto& c) { return c.first == id && (c.second || !deaf); });
  }

  static std::vector<std::string> hosts_of(const Json& inventory, const std::string& group) {
    std::vector<std::string> out;
    const Json path = inventory.value("all", Json::object()).value("children", Json::object());
    if (!path.contains(group)) return out;
    for (const auto& [host, vars] : path[group]["hosts"].items()) out.push_back(host);
    return out;
  }

  static std::string availability_of(const Json& inventory, const std::string& host) {
    return inventory.at("all")
        .at("children")
        .at("clusterctl_targets")
        .at("hosts")
        .at(host)
        .at("clusterctl_availability");
  }

  static std::string text_of(const Json& value) {
    return value.is_object()   ? value.value("__ansible_unsafe", "")
           : value.is_string() ? value.get<std::string>()
                               : "";
  }

  void emit(const run::RunSpec& spec, const Script& script,
            const std::function<void(std::string_view)>& on_line) const {
    const Json inventory = Json::parse(spec.files.inventory);
    int n = 0;
    const auto line = [&](Json event) {
      event["v"] = 1;
      event["n"] = ++n;
      event["t"] = "2026-01-01T00:00:00.000Z";
      on_line(dump_json(event));
    };
    Json stats = Json::object();
    const std::string door = spec.stage == "site" ? "main" : spec.stage;
    for (const std::string& host : hosts_of(inventory, "clusterctl_targets")) {
      const Json vars =
          inventory.at("all").at("children").at("clusterctl_targets").at("hosts").at(host);
      Json counts{{"ok", 5},      {"changed", 1}, {"failures", 0}, {"unreachable", 0},
                  {"skipped", 0}, {"rescued", 0}, {"ignored", 0}};
      const auto result = [&](const std::string& service, const std::string& status,
                              const std::string& msg) {
        line({{"event", "result"},
              {"host", host},
              {"task", "do it"},
              {"service", service},
              {"door", door},
              {"action", "x"},
              {"status", status},
              {"changed", status == "ok" && spec.stage != "verify"},
              {"ignored", false},
              {"ms", 1},
              {"msg", msg},
              {"module", true}});
      };
      if (script.unreachable.count(host)) {
        result("", "unreachable", "no route to host");
        counts = {{"ok", 0},      {"changed", 0}, {"failures", 0}, {"unreachable", 1},
                  {"skipped", 0}, {"rescued", 0}, {"ignored", 0}};
      } else if (const auto f = script.failing.find(host); f != script.failing.end()) {
        const size_t colon = f->second.find(": ");
        result("base", "ok", "");
        result(f->second.substr(0, colon), "failed", f->second.substr(colon + 2));
        counts["failures"] = 1;
      } else {
        result("base", "ok", "");
        facts(spec, script, host, vars, line);
      }
      stats[host] = counts;
    }
    if (script.cancelled) {
      line({{"event", "cancelled"}});
    } else if (!script.interrupted) {
      line({{"event", "stats"}, {"hosts", stats}});
    }
  }

  static void facts(const run::RunSpec& spec, const Script& script, const std::string& host,
                    const Json& vars, const std::function<void(Json)>& line) {
    if (script.without_facts.count(host)) return;
    if (spec.stage == "check") {
      Json problems = Json::array();
      if (const auto p = script.problems.find(host); p != script.problems.end()) {
        problems.push_back(
            {{"service", "base"}, {"code", "x"}, {"message", p->second}, {"hint", "do y"}});
      }
      line({{"event", "fact"},
            {"host", host},
            {"name", "clusterctl_problems"},
            {"value", problems}});
    }
    if (spec.playbook == "availability.yml") {
      line({{"event", "fact"},
            {"host", host},
            {"name", "clusterctl_scheduling"},
            {"value", {{"v", 1}, {"availability", vars.at("clusterctl_availability")}}}});
    }
    if (spec.stage != "verify" && spec.stage != "observe") return;
    for (const Json& item : vars.value("clusterctl_services", Json::array())) {
      const std::string service = text_of(item);
      const auto bad = script.unhealthy.find(host);
      const bool healthy = bad == script.unhealthy.end() || bad->second != service;
      Json fact{{"v", 1},
                {"version", "1.0"},
                {"healthy", healthy},
                {"message", healthy ? "" : "it is down"},
                {"member_id", service + "-" + host}};
      if (const auto m = script.members.find(service); m != script.members.end())
        fact["members"] = m->second;
      line({{"event", "fact"},
            {"host", host},
            {"name", "clusterctl_service_" + service},
            {"value", fact}});
    }
  }

  mutable Mutex mutex_;
  std::map<std::string, run::Phase> phases_;
};

}  // namespace clusterctl::fakes
