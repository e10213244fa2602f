#include "fleet/placement_vip.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fleet/patterns.h"
#include "fleet/subnet.h"
#include "fleet/vars.h"

namespace clusterctl::fleet {
namespace {

bool is_set(const Json& vars, std::string_view name) {
  const auto it = vars.find(name);
  return it != vars.end() && !it->is_null() && *it != "" && *it != false;
}

const std::string kSet = "`clusterctl global set service_vip=ADDRESS`";

// The address itself: an IP, inside the control subnet, nobody's.
void check_address(const Placement& p, const Candidate& c, const std::string& vip, Findings& out) {
  if (!is_ip(vip)) {
    return out.refuse(
        "bad_vip", c,
        fmt::format("{}: service_vip {} is not an IP address", c.node->name, shown(vip)), kSet);
  }
  for (const auto& [id, node] : p.snapshot->nodes) {
    if (canonical_addr(node.spec.addr) != canonical_addr(vip)) continue;
    out.refuse(
        "vip_taken", c,
        fmt::format("{}: service_vip {} is the address of node {}", c.node->name, vip, node.name),
        "choose a free address: " + kSet);
  }
  if (!is_set(c.vars, "control_subnet")) return;
  const std::string cidr = var_text(c.vars, "control_subnet");
  const auto subnet = Subnet::parse(cidr);
  if (!subnet) {
    out.refuse("bad_subnet", c,
               fmt::format("{}: control_subnet {} is not a network", c.node->name, shown(cidr)),
               "e.g. \"10.0.0.0/24\"");
  } else if (!subnet->contains(vip)) {
    out.refuse(
        "vip_outside", c,
        fmt::format("{}: service_vip {} is outside control_subnet {}", c.node->name, vip, cidr),
        "choose an address inside it: " + kSet);
  } else if (subnet->is_edge(vip)) {
    out.refuse("vip_outside", c,
               fmt::format("{}: service_vip {} is the network or broadcast address of {}",
                           c.node->name, vip, cidr),
               "choose a host address inside it: " + kSet);
  }
}

// Managers that are there already: one address for all, and each of them able to hold it.
void check_standing(const Placement& p, const Candidate& c, Findings& out) {
  const std::string vip = var_text(c.vars, "service_vip");
  for (const Standing& s : p.standing) {
    if (std::find(p.managers.begin(), p.managers.end(), s.node) == p.managers.end()) continue;
    if (var_text(s.vars, "service_vip") != vip) {
      out.refuse(
          "vip_differs", c,
          fmt::format("{} and {} have different values of service_vip", s.node->name, c.node->name),
          "set it once for all: " + kSet);
    }
    for (const std::string& service : c.services) {
      const auto& there = s.node->status.applied->services;
      const bool missing = std::find(there.begin(), there.end(), service) == there.end();
      if (vip.empty() || !missing || !p.vip_services.count(service)) continue;
      out.warn(
          "vip_not_carried", s.node->name,
          fmt::format("{} does not carry {} yet and cannot hold {}", s.node->name, service, vip),
          fmt::format("`clusterctl node update {}`", s.node->name));
    }
  }
}

}  // namespace

std::vector<std::string_view> vip_codes() {
  return {"vip_required", "bad_vip",     "vip_taken",      "bad_subnet",
          "vip_outside",  "vip_differs", "vip_not_carried"};
}

void check_vip(const Placement& p, Findings& out) {
  size_t managers = p.managers.size();
  for (const Candidate& c : p.candidates) managers += c.role == Role::kManager ? 1 : 0;
  const Candidate* first = nullptr;
  for (const Candidate& c : p.candidates) {
    if (c.role != Role::kManager) continue;
    if (is_set(c.vars, "service_vip")) {
      check_address(p, c, var_text(c.vars, "service_vip"), out);
    } else if (managers > 1 && var_text(c.vars, "vip_provider") != "external") {
      out.refuse("vip_required", c,
                 fmt::format("{}: {} managers need one address for all, service_vip is not set",
                             c.node->name, managers),
                 kSet +
                     ", or `clusterctl global set vip_provider=external` when a load balancer "
                     "stands in front of them");
    }
    if (!first) check_standing(p, c, out);
    if (!first) first = &c;
    if (var_text(c.vars, "service_vip") != var_text(first->vars, "service_vip")) {
      out.refuse("vip_differs", c,
                 fmt::format("{} and {} have different values of service_vip", first->node->name,
                             c.node->name),
                 "set it once for all: " + kSet);
    }
  }
}

}  // namespace clusterctl::fleet
