#include "fleet/placement_host.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "fleet/patterns.h"

namespace clusterctl::fleet {
namespace {

constexpr const char* kVariable = "ucp_bootstrap_node_name";

}  // namespace

bool is_own_host(const OwnHost& own, const Node& node) {
  const std::string addr = canonical_addr(node.spec.addr);
  // What leads to this machine on any host; the rest of 127.0.0.0/8 may be a forwarded port or a
  // machine inside this one, and shows itself by its machine id.
  if (own.addresses.count(addr) || addr == "0.0.0.0" || addr == "::") return true;
  if (!is_ip(addr) && is_loopback(addr)) return true;
  return !own.machine_id.empty() && node.status.hardware &&
         lower(node.status.hardware->machine_id) == lower(own.machine_id);
}

// Docker is restarted there and firewall rules change: whoever wants that says so.
void check_own_host(const Placement& p, Findings& out) {
  if (p.own_host_meant) return;
  for (const Candidate& c : p.candidates) {
    if (!is_own_host(p.snapshot->own_host, *c.node)) continue;
    out.refuse("own_host", c,
               fmt::format("{} ({}) is the machine that this controller runs on", c.node->name,
                           c.node->spec.addr),
               "correct the address, or say that it is meant: --controller-host");
  }
}

// A variable that Ansible would look for at the top and find nowhere fails the run late.
void check_first_manager(const Placement& p, Findings& out) {
  for (const Candidate& c : p.candidates) {
    const auto env = c.vars.find("env");
    if (env != c.vars.end() && env->is_object() && env->contains(kVariable)) {
      out.refuse("misplaced_variable", c,
                 fmt::format("{}: {} stands inside env, where nothing looks for it", c.node->name,
                             kVariable),
                 fmt::format("set {} itself, beside env", kVariable));
    }
    const auto value = c.vars.find(kVariable);
    if (value == c.vars.end() || value->is_null()) continue;
    const std::string name = plain_text(*value);
    if (name.empty()) continue;
    const Node* node = p.snapshot->by_name(name);
    if (!node) {
      std::string hint = "`clusterctl node ls` shows the names";
      for (const auto& [id, other] : p.snapshot->nodes) {
        if (canonical_addr(other.spec.addr) == canonical_addr(name))
          hint = "that is the address of " + other.name + ": a node is named by its name";
      }
      out.refuse("unknown_first_manager", c,
                 fmt::format("{}: {} names {}, and there is no such node", c.node->name, kVariable,
                             shown(name)),
                 hint);
    } else if (p.managers.empty() && c.role == Role::kManager) {
      bool comes = false;
      for (const Candidate& other : p.candidates)
        comes = comes || (other.node == node && other.role == Role::kManager);
      if (comes) continue;
      out.refuse("first_manager_missing", c,
                 fmt::format("{} would begin the cluster, and {} names {}, which is no manager of "
                             "this request",
                             c.node->name, kVariable, name),
                 fmt::format("name {} as well, or change {}", name, kVariable));
    }
  }
}

}  // namespace clusterctl::fleet
