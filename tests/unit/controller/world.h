// Machines, and what playbook runs do to them: a cluster in memory behind run::Runs. Who is a
// member of what is decided here by what the runs do, never by what the controller believes. It
// knows nothing of plans or rules; it only notes what must not happen:
//   * a change of members without a majority, or that loses the majority;
//   * a second cluster beside the first;
//   * a run on a machine that is off for good;
//   * a run started twice.
// Faults are ordered by stage and host. All functions may be called from any thread.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/json.h"
#include "fakes/fake_clock.h"
#include "run/runs.h"

namespace clusterctl::controller {

class World final : public run::Runs {
 public:
  struct Machine {
    bool up = true;
    std::set<std::string> services;
    std::string availability = "active";
  };
  // In which stage a host fails, and whether something was changed there before.
  struct Fault {
    std::string stage, host;
    bool touched = true;
  };

  explicit World(FakeClock& clock) : clock_(clock) {}

  // ---- for the test, while nothing runs ----
  std::map<std::string, Machine> machines;
  std::vector<Fault> faults;  // each is used up by the first run that meets it
  const std::set<std::string> quorum_services{"etcd", "swarm"};

  std::set<std::string> members(const std::string& service) const {
    const auto it = members_.find(service);
    return it == members_.end() ? std::set<std::string>() : it->second;
  }
  int alive(const std::string& service) const {
    int n = 0;
    for (const std::string& name : members(service)) n += machines.at(name).up;
    return n;
  }
  bool majority(const std::string& service) const {
    const auto all = members(service);
    return all.empty() || alive(service) > static_cast<int>(all.size()) / 2;
  }
  bool is_member(const std::string& name) const {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const auto& entry) { return entry.second.count(name) != 0; });
  }
  const std::vector<std::string>& wrong() const { return wrong_; }
  size_t runs() const {
    MutexLock lock(mutex_);
    return runs_.size();
  }

  // When every member is off for good there is no cluster any more; what is left on its machines is
  // gone with their disks.
  void forget_cluster_of(const std::vector<std::string>& gone) {
    for (const auto& [service, all] : members_) {
      for (const std::string& m : all) {
        if (std::find(gone.begin(), gone.end(), m) == gone.end()) return;
      }
    }
    members_.clear();
    for (const std::string& name : gone) machines[name].services.clear();
  }

  // ---- run::Runs ----
  Status prepare(const run::RunSpec& spec) override {
    MutexLock lock(mutex_);
    runs_[spec.id].spec = spec;
    return {};
  }
  // The whole run happens here; what it says is kept and told as often as it is asked.
  Status start(const std::string& id) override {
    MutexLock lock(mutex_);
    Run& run = runs_.at(id);
    if (run.done) return {};
    run.done = true;
    clock_.advance(std::chrono::seconds(1));
    Play(*this, run).play();
    return {};
  }
  run::RunState look(const std::string& id) const override {
    MutexLock lock(mutex_);
    const auto it = runs_.find(id);
    if (it == runs_.end()) return {};
    if (!it->second.done) return {run::Phase::kPrepared, std::nullopt};
    return {run::Phase::kFinished, it->second.exit};
  }
  run::RunState follow(const std::string& id, std::stop_token,
                       const std::function<void(std::string_view)>& on_line) override {
    std::vector<std::string> lines;
    {
      MutexLock lock(mutex_);
      lines = runs_.at(id).lines;
    }
    for (const std::string& line : lines) on_line(line);
    return look(id);
  }
  std::optional<Time> last_output(const std::string&) const override { return clock_.now(); }
  Status cancel(const std::string&, bool) override { return {}; }
  Status scrub(const std::string&) override { return {}; }
  Result<std::string> read_known_hosts(const std::string&) const override { return std::string(); }
  fs::path dir(const std::string& id) const override { return "/nonexistent/" + id; }

 private:
  struct Run {
    run::RunSpec spec;
    bool done = false;
    std::vector<std::string> lines;
    run::Exit exit;
  };

  // One run, from its inventory to its events.
  class Play {
   public:
    Play(World& world, Run& run) : w_(world), run_(run) {
      inventory_ = Json::parse(run.spec.files.inventory);
      vars_ = inventory_.at("all").value("vars", Json::object());
      for (const auto& [host, vars] :
           inventory_.at("all").at("children").at("clusterctl_targets").at("hosts").items())
        hosts_.push_back(host);
      // Managers first, in the order in which they are named.
      const auto order = names("clusterctl_managers");
      std::stable_sort(hosts_.begin(), hosts_.end(), [&](const auto& a, const auto& b) {
        return std::find(order.begin(), order.end(), a) < std::find(order.begin(), order.end(), b);
      });
    }

    void play() {
      for (const std::string& host : hosts_) {
        Counts& c = counts_[host];
        if (!reach(host)) {
          c.unreachable = 1;
          result(host, "unreachable", "no route to host");
          continue;
        }
        const auto fault = take_fault(host);
        if (fault && !fault->touched) {
          fail(host, "it does not fit");
          continue;
        }
        result(host, "ok", "");
        const std::string why = act(host);
        if (!why.empty() || fault) {
          fail(host, why.empty() ? "it broke" : why);
        } else {
          facts(host);
        }
      }
      Json stats = Json::object();
      for (const auto& [host, c] : counts_) {
        stats[host] = {{"ok", 3},      {"changed", 1}, {"failures", c.failures},
                       {"skipped", 0}, {"rescued", 0}, {"unreachable", c.unreachable},
                       {"ignored", 0}};
      }
      line({{"event", "stats"}, {"hosts", stats}});
    }

   private:
    struct Counts {
      int failures = 0, unreachable = 0;
    };
    bool scheduling() const { return run_.spec.playbook == "availability.yml"; }

    std::string text(const Json& value) const {
      return value.is_object()   ? value.value("__ansible_unsafe", "")
             : value.is_string() ? value.get<std::string>()
                                 : "";
    }
    std::string var(const std::string& name) const { return text(vars_.value(name, Json())); }
    std::vector<std::string> names(const std::string& name) const {
      std::vector<std::string> out;
      for (const Json& item : vars_.value(name, Json::array()))
        out.push_back(item.is_object() && item.contains("name") ? text(item["name"]) : text(item));
      return out;
    }
    const Json& of(const std::string& host) const {
      return inventory_.at("all").at("children").at("clusterctl_targets").at("hosts").at(host);
    }
    std::set<std::string> services(const std::string& host) const {
      std::set<std::string> out;
      for (const Json& item : of(host).value("clusterctl_services", Json::array()))
        out.insert(text(item));
      return out;
    }
    bool is_up(const std::string& name) const {
      const auto it = w_.machines.find(name);
      return it != w_.machines.end() && it->second.up;
    }
    // A change in the scheduler goes through a manager, the given one or the first other one that
    // is named; the target need not answer.
    bool reach(const std::string& host) const {
      if (!scheduling()) return is_up(host);
      auto ways = names("clusterctl_managers");
      if (const std::string peer = var("clusterctl_peer"); !peer.empty())
        ways.insert(ways.begin(), peer);
      std::erase(ways, host);
      return is_up(ways.empty() ? host : ways[0]);
    }
    std::optional<Fault> take_fault(const std::string& host) {
      for (auto it = w_.faults.begin(); it != w_.faults.end(); ++it) {
        if (it->stage != run_.spec.stage || it->host != host) continue;
        const Fault out = *it;
        w_.faults.erase(it);
        return out;
      }
      return std::nullopt;
    }

    // What the run does to this machine; why it fails.
    std::string act(const std::string& host) {
      const std::string& stage = run_.spec.stage;
      if (scheduling()) {
        w_.machines[host].availability = text(of(host).at("clusterctl_availability"));
      } else if (stage == "site") {
        return converge(host);
      } else if (stage == "cleanup") {
        return clean(host);
      } else if (stage == "forget") {
        for (const std::string& lost : names("clusterctl_lost")) {
          if (!leave(lost)) return "no majority";
        }
      }
      return "";
    }

    std::string converge(const std::string& host) {
      Machine& machine = w_.machines[host];
      const bool manager = text(of(host).at("clusterctl_role")) == "manager";
      for (const std::string& service : services(host)) {
        const auto all = w_.members(service);
        if (w_.quorum_services.count(service) && manager) {
          if (!all.count(host) && !join(host, service)) return service + ": cannot join";
        } else if (w_.quorum_services.count(service) && !all.count(host) && !w_.majority(service)) {
          return service + ": nobody answers that could take a worker";
        } else if (w_.quorum_services.count(service) && all.empty()) {
          return service + ": there is no cluster to join";
        }
        machine.services.insert(service);
      }
      machine.availability = text(of(host).at("clusterctl_availability"));
      return "";
    }
    bool join(const std::string& host, const std::string& service) {
      auto& all = w_.members_[service];
      if (all.empty()) {
        if (var("clusterctl_initiator").empty()) return false;
        all.insert(host);
        return true;
      }
      const std::string peer = var("clusterctl_peer"), initiator = var("clusterctl_initiator");
      const bool through_peer = all.count(peer) && is_up(peer);
      const bool through_first = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& other) {
        return other != host && all.count(other) && is_up(other);
      });
      if (!through_peer && !through_first) {
        if (initiator == host) w_.note(service + ": " + host + " begins a second cluster");
        return false;
      }
      if (!w_.majority(service)) return false;
      all.insert(host);
      if (!w_.majority(service)) w_.note(service + ": lost its majority when " + host + " joined");
      return true;
    }

    std::string clean(const std::string& host) {
      Machine& machine = w_.machines[host];
      if (w_.is_member(host) && !leave(host)) return "no majority to leave";
      machine.services.clear();
      machine.availability = "active";
      return "";
    }
    // False: nobody could be told.
    bool leave(const std::string& host) {
      for (auto& [service, all] : w_.members_) {
        if (!all.count(host)) continue;
        const bool whole = all.size() == 1;
        const bool had = w_.majority(service);
        // Without a majority only what is taken apart as a whole can go: each machine for itself.
        const auto leaving = names("clusterctl_leaving");
        const bool all_leave = std::all_of(all.begin(), all.end(), [&](const std::string& m) {
          return std::find(leaving.begin(), leaving.end(), m) != leaving.end();
        });
        if (!had && !whole && !all_leave && !var("clusterctl_peer").empty()) return false;
        all.erase(host);
        if (had && !w_.majority(service) && !all_leave)
          w_.note(service + ": lost its majority when " + host + " left");
      }
      return true;
    }

    void facts(const std::string& host) {
      if (run_.spec.stage == "check") fact(host, "clusterctl_problems", Json::array());
      if (scheduling()) {
        fact(host, "clusterctl_scheduling",
             {{"v", 1}, {"availability", w_.machines[host].availability}});
      }
      if (run_.spec.stage != "verify" && run_.spec.stage != "observe") return;
      for (const std::string& service : services(host)) {
        const bool there = w_.machines[host].services.count(service) != 0;
        const bool counts = w_.quorum_services.count(service) != 0;
        const bool healthy = there && (!counts || w_.majority(service));
        Json value{{"v", 1},
                   {"version", "1"},
                   {"healthy", healthy},
                   {"message", healthy ? ""
                               : there ? "no majority"
                                       : "it is not there"},
                   {"member_id", service + "-" + host}};
        if (counts && w_.members(service).count(host)) {
          value["members"] = Json::array();
          for (const std::string& m : w_.members(service)) {
            value["members"].push_back({{"id", service + "-" + m},
                                        {"name", m},
                                        {"addr", ""},
                                        {"role", service == "swarm" ? "manager" : "member"},
                                        {"reachable", is_up(m)},
                                        {"leader", false}});
          }
        }
        fact(host, "clusterctl_service_" + service, value);
      }
    }

    void fail(const std::string& host, const std::string& why) {
      counts_[host].failures = 1;
      result(host, "failed", why);
      run_.exit.code = 2;
    }
    void result(const std::string& host, const std::string& status, const std::string& msg) {
      if (status == "unreachable") run_.exit.code = 4;
      line({{"event", "result"},
            {"host", host},
            {"task", "do it"},
            {"service", "base"},
            {"door", run_.spec.stage == "site" ? "main" : run_.spec.stage},
            {"action", "x"},
            {"status", status},
            {"changed",
             status == "ok" && (run_.spec.stage == "site" || run_.spec.stage == "cleanup")},
            {"ignored", false},
            {"ms", 1},
            {"msg", msg},
            {"module", status == "ok"}});
    }
    void fact(const std::string& host, const std::string& name, Json value) {
      line({{"event", "fact"}, {"host", host}, {"name", name}, {"value", std::move(value)}});
    }
    void line(Json event) {
      event["v"] = 1;
      event["n"] = static_cast<int>(run_.lines.size()) + 1;
      event["t"] = "2026-01-01T00:00:00.000Z";
      run_.lines.push_back(dump_json(event));
    }

    World& w_;
    Run& run_;
    Json inventory_, vars_;
    std::vector<std::string> hosts_;
    std::map<std::string, Counts> counts_;
  };

  void note(std::string what) { wrong_.push_back(std::move(what)); }

  FakeClock& clock_;
  std::map<std::string, std::set<std::string>> members_;
  mutable Mutex mutex_;
  std::map<std::string, Run> runs_ GUARDED_BY(mutex_);
  std::vector<std::string> wrong_;
};

}  // namespace clusterctl::controller
