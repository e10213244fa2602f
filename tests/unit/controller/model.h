// What the design allows, reckoned apart from the program: from the state of the nodes, who is a
// member and who answers, to whether a request is accepted and where its nodes end. Written from
// the rules as they are documented (docs/placement.md, docs/quorum.md, docs/rest.md); it shares no
// code with what it judges.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/world.h"

namespace clusterctl::controller {

class Model {
 public:
  struct Node {
    std::string lifecycle = "Unallocated";
    bool manager = false;   // by the group it was given last
    bool verified = false;  // it is what was verified, not what is wished
    bool seen_down = false;
    std::string availability = "active";
    std::string word() const { return lifecycle; }
  };
  std::map<std::string, Node> nodes;
  bool vip = true;
  int budget = 1;

  explicit Model(const World& world) : world_(world) {}

  bool serves(const Node& n) const {
    return n.verified && (n.lifecycle == "Allocated" || n.lifecycle == "Maintenance");
  }
  bool in_use(const Node& n) const {
    return n.lifecycle != "Unallocated" && n.lifecycle != "Decommissioned";
  }

  // "" when it is accepted, else the code of a reason.
  std::string judge(const Json& r) const {
    const auto names = r.at("nodes").get<std::vector<std::string>>();
    const std::string kind = r.at("kind");
    if (kind == "commission") return judge_commission(r, names);
    if (kind == "decommission") return judge_decommission(r, names);
    if (kind == "update") return judge_update(r, names);
    return judge_availability(r, names);
  }

 private:
  using Names = std::vector<std::string>;
  static bool in(const Names& names, const std::string& n) {
    return std::find(names.begin(), names.end(), n) != names.end();
  }
  static bool flag(const Json& r, const char* name) { return r.value(name, false); }
  static int q(int total) { return total / 2 + 1; }
  bool up(const std::string& n) const { return world_.machines.at(n).up; }

  // Managers that serve, without those of the request.
  Names staying(const Names& without) const {
    Names out;
    for (const auto& [name, n] : nodes) {
      if (serves(n) && n.manager && !in(without, name)) out.push_back(name);
    }
    return out;
  }
  bool any_answers(const Names& managers) const {
    return std::any_of(managers.begin(), managers.end(),
                       [&](const std::string& n) { return !nodes.at(n).seen_down && up(n); });
  }

  std::string judge_commission(const Json& r, const Names& names) const {
    int fresh = 0;
    bool worker = false;
    for (const std::string& name : names) {
      if (in_use(nodes.at(name))) return "transition";
      const bool manager = wants_manager(r, name);
      fresh += manager;
      worker = worker || !manager;
    }
    const Names stay = staying(names);
    if (stay.empty() && fresh > 0) {
      for (const auto& [name, n] : nodes) {
        if (in_use(n) && n.manager && !in(names, name)) return "unfinished_manager";
      }
      for (const std::string& service : world_.quorum_services) {
        for (const std::string& m : world_.members(service)) {
          if (!in(names, m)) return "no_reachable_manager";
        }
      }
    }
    if (stay.empty() && fresh == 0) return "no_manager";
    if (!stay.empty() && !any_answers(stay)) return "no_reachable_manager";
    if (fresh > 0 && fresh + static_cast<int>(stay.size()) > 1 && !vip) return "vip_required";
    for (const std::string& service : world_.quorum_services) {
      int t = static_cast<int>(world_.members(service).size()), h = world_.alive(service);
      for (int i = 0; i < fresh; ++i, ++t, ++h) {
        if (t == 0) continue;
        if (h < q(t) || (h < t && !flag(r, "force"))) return "quorum";
      }
    }
    return "";
  }
  bool wants_manager(const Json& r, const std::string& name) const {
    const std::string group = r.value("host_group", "");
    return group.empty() ? nodes.at(name).manager : group == "service-master";
  }

  std::string judge_decommission(const Json& r, const Names& names) const {
    const bool off = flag(r, "force") && flag(r, "powered_off");
    bool manager_leaves = false, others = false;
    for (const std::string& name : names) {
      const Node& n = nodes.at(name);
      if (!in_use(n)) return "transition";
      if (n.seen_down && !off) return "unreachable";
      manager_leaves = manager_leaves || n.manager || world_.is_member(name);
    }
    for (const auto& [name, n] : nodes) others = others || (in_use(n) && !in(names, name));
    const Names stay = staying(names);
    if (manager_leaves && stay.empty() && others && !flag(r, "force")) return "last_manager";
    for (const std::string& service : world_.quorum_services) {
      const std::string code = judge_leaving(r, names, service, off, others, !stay.empty());
      if (!code.empty()) return code;
    }
    if (!stay.empty() && !any_answers(stay)) return "no_reachable_manager";
    return "";
  }
  std::string judge_leaving(const Json& r, const Names& names, const std::string& service, bool off,
                            bool others, bool manager_stays) const {
    const auto members = world_.members(service);
    int t = static_cast<int>(members.size()), h = 0, live = 0, dead = 0;
    for (const std::string& m : members) {
      const bool leaves = in(names, m);
      h += up(m) && !(leaves && off);
      if (leaves) ++(up(m) && !off ? live : dead);
    }
    if (live + dead == 0 || !others || (live + dead == t && !manager_stays)) return "";
    for (; live > 0; --live, --t, --h) {
      if (t == 1) return flag(r, "force") ? "" : "quorum";
      if (h < q(t) || h - 1 < q(t - 1)) return "quorum";
    }
    for (; dead > 0; --dead, --t) {
      if (h < q(t)) return "quorum";
    }
    return "";
  }

  std::string judge_update(const Json& r, const Names& names) const {
    Names workers;
    for (const std::string& name : names) {
      const Node& n = nodes.at(name);
      if (!serves(n)) return "transition";
      if (n.seen_down) return "unreachable";
      if (!n.manager) workers.push_back(name);
    }
    for (const std::string& service : world_.quorum_services) {
      const int t = static_cast<int>(world_.members(service).size()), h = world_.alive(service);
      for (const std::string& name : names) {
        if (!world_.members(service).count(name)) continue;
        if (t <= 2 ? !flag(r, "allow_outage") : h - 1 < q(t)) return "quorum";
      }
    }
    if (!way(names)) return "no_reachable_manager";
    // Those that are away anyway cost nothing, and come back; those that are drained do not.
    int stay_away = 0;
    bool costs = false;
    for (const auto& [name, n] : nodes) {
      if (n.manager || !counts_as_worker(n)) continue;
      if (is_away(n) && (!in(workers, name) || n.availability == "drain")) ++stay_away;
      if (!is_away(n) && in(workers, name)) costs = true;
    }
    return costs && stay_away >= budget_of(r) ? "budget" : "";
  }

  std::string judge_availability(const Json& r, const Names& names) const {
    for (const std::string& name : names) {
      if (!serves(nodes.at(name))) return "transition";
    }
    if (!way(names)) return "no_reachable_manager";
    if (r.at("kind") == "activate") return "";
    int away = 0, costs = 0;
    for (const auto& [name, n] : nodes) {
      if (n.manager || !counts_as_worker(n)) continue;
      if (is_away(n)) {
        ++away;
      } else if (in(names, name)) {
        ++costs;
      }
    }
    return costs > 0 && away + costs > budget_of(r) ? "budget" : "";
  }
  int budget_of(const Json& r) const {
    return r.contains("max_unavailable") ? std::stoi(r["max_unavailable"].get<std::string>())
                                         : budget;
  }
  // A manager that answers, or the only one there is, asked for itself.
  bool way(const Names& names) const {
    const Names all = staying({});
    return any_answers(all) || (all.size() == 1 && names == all);
  }
  bool counts_as_worker(const Node& n) const {
    return serves(n) || (n.verified && n.lifecycle == "Cancelled");
  }
  bool is_away(const Node& n) const {
    return n.seen_down || n.lifecycle != "Allocated" || n.availability == "drain";
  }

  const World& world_;
};

}  // namespace clusterctl::controller
