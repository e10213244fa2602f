// Requests that start a job: commission, decommission, update; and discovery.
#include <fmt/format.h>

#include <algorithm>

#include "api/compat/request.h"
#include "api/compat/routes.h"
#include "api/compat/views.h"
#include "base/strings.h"
#include "fleet/patterns.h"
#include "fleet/words.h"

namespace clusterctl::api::compat {
namespace {

using controller::Controller;
using fleet::Lifecycle;
using Nodes = std::vector<const fleet::Node*>;

// From which statuses a kind of work may begin, and into which it leads: contiv's table.
struct Way {
  std::string_view kind;
  std::vector<std::string_view> from;
  std::string_view to;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> kWays{
      {"commission", {"Unallocated", "Decommissioned", "Provisioning"}, "Provisioning"},
      {"update", {"Allocated", "Maintenance"}, "Maintenance"},
      {"decommission", {"Allocated", "Maintenance", "Cancelled", "Provisioning"}, "Cancelled"}};
  return kWays;
}

Result<Nodes> find_all(const fleet::Snapshot& fleet, const std::vector<std::string>& refs) {
  if (refs.empty())
    return fail(Code::kInvalid, "no_nodes", "at least one node must be named",
                R"({"nodes": ["NAME"]})");
  Nodes out;
  for (const std::string& ref : refs) {
    const auto node = fleet.find(ref);
    if (!node && node.error().code != Code::kNotFound) return fail(node.error());
    if (!node)
      return fail(Code::kNotFound, "no_such_node",
                  fmt::format("node with name {} doesn't exist", fleet::shown(ref)),
                  "GET /info/nodes lists them");
    out.push_back(*node);
  }
  return out;
}

// Taking out what is dead has to be meant: there is no way to say so here.
Status check_there(const Nodes& nodes) {
  std::vector<std::string> gone;
  for (const fleet::Node* n : nodes) {
    if (n->status.presence == fleet::Presence::kDisappeared) gone.push_back(n->name);
  }
  if (gone.empty()) return {};
  return fail(Code::kConflict, "disappeared",
              fmt::format("one or more nodes are not in discovered state: {}", join(gone, ", ")),
              "look at their network; a machine that is gone for good: clusterctl node "
              "decommission NAME --force --i-have-powered-it-off");
}

Status check_ways(const Nodes& nodes, std::string_view kind) {
  const auto way =
      std::find_if(ways().begin(), ways().end(), [&](const Way& w) { return w.kind == kind; });
  for (const fleet::Node* n : nodes) {
    if (is_broken(*n)) continue;  // it can be updated and taken out; see below
    const std::string_view from = fleet::word(n->status.lifecycle);
    if (std::find(way->from.begin(), way->from.end(), from) != way->from.end()) continue;
    return fail(Code::kConflict, "transition",
                fmt::format("failed to update {}: transition from \"{}\" to \"{}\" is not allowed",
                            n->name, from, way->to));
  }
  return {};
}

Status check_group(const catalog::Catalog& catalog, const std::string& group, bool required) {
  if (group.empty() ? !required : catalog.host_group(group) != nullptr) return {};
  return fail(Code::kInvalid, "unknown_group",
              fmt::format("invalid or empty host-group: {}", fleet::shown(group)),
              "one of: " + join(catalog.host_group_names(), ", "));
}

bool has_group(const fleet::Node& node, const std::string& group) {
  return node.status.applied && node.status.applied->host_group == group;
}

// A group that all of them have is no change; one that some of them have would be two kinds of
// work.
Status settle_group(const Nodes& nodes, std::string& group) {
  if (group.empty()) return {};
  const auto has = std::count_if(nodes.begin(), nodes.end(),
                                 [&](const fleet::Node* n) { return has_group(*n, group); });
  if (has == 0) return {};
  if (has == static_cast<std::ptrdiff_t>(nodes.size())) {
    group.clear();
    return {};
  }
  return fail(Code::kInvalid, "mixed_groups",
              fmt::format("some of these nodes are {} already", group),
              "update those that are, and those that are not, in requests of their own");
}

// What POST /v1/jobs takes for it.
Result<Json> job_request(const Controller& c, std::string kind, Body body) {
  const auto fleet = c.fleet();
  const auto nodes = find_all(*fleet, body.nodes);
  if (!nodes) return fail(nodes.error());
  if (auto ok = check_there(*nodes); !ok) return fail(ok.error());
  if (kind != "decommission") {
    if (auto ok = check_group(c.catalog(), body.host_group, kind == "commission"); !ok)
      return fail(ok.error());
  }
  if (auto ok = check_ways(*nodes, kind); !ok) return fail(ok.error());
  const auto broken = std::count_if(nodes->begin(), nodes->end(),
                                    [](const fleet::Node* n) { return is_broken(*n); });
  if (kind == "commission" && broken > 0) {
    if (broken < static_cast<std::ptrdiff_t>(nodes->size()))
      return fail(Code::kConflict, "broken", "the last work on some of these nodes failed",
                  "commission those in a request of their own: that updates them");
    kind = "update";
  }
  if (kind == "update") {
    if (auto ok = settle_group(*nodes, body.host_group); !ok) return fail(ok.error());
  }
  Json out{{"kind", kind}, {"nodes", body.nodes}, {"if_busy", "refuse"}};
  if (!body.host_group.empty() && kind != "decommission") out["host_group"] = body.host_group;
  if (!body.extra_vars.empty()) out["vars"] = std::move(body.extra_vars);
  // There an update takes the node's services down, of however many managers.
  if (kind == "update") out["allow_outage"] = true;
  return out;
}

Result<Response> work(Controller& c, OneAtATime& one, const std::string& kind,
                      const Request& request) {
  auto body = read_body(request);
  if (!body) return fail(body.error());
  // A node of the address is the only one; what the body names means nothing then.
  if (const auto it = request.params.find("name"); it != request.params.end())
    body->nodes = {it->second};
  MutexLock lock(one.mutex);
  if (auto ok = check_no_active_job(c); !ok) return fail(ok.error());
  const auto wanted = job_request(c, kind, std::move(*body));
  if (!wanted) return fail(wanted.error());
  const auto accepted = c.create_job(*wanted, request.identity.name, "");
  if (!accepted) return fail(accepted.error());
  return done().with("Location", "/v1/jobs/" + accepted->job->id);
}

// Whether a machine answers there that is a node already can be said; to look is not built.
Result<Response> discover(const Controller& c, const Request& request) {
  const auto body = read_body(request);
  if (!body) return fail(body.error());
  if (body->addrs.empty())
    return fail(Code::kInvalid, "no_addrs", "at least one address must be given",
                R"({"addrs": ["ADDRESS"]})");
  const auto fleet = c.fleet();
  std::vector<std::string> known;
  for (const std::string& addr : body->addrs) {
    if (!fleet::is_ip(addr))
      return fail(Code::kInvalid, "bad_addr",
                  fmt::format("failed to parse ip address {}", fleet::shown(addr)));
    for (const auto& [id, node] : fleet->nodes) {
      if (node.status.presence != fleet::Presence::kDisappeared &&
          fleet::canonical_addr(node.spec.addr) == fleet::canonical_addr(addr))
        known.push_back(node.name + ":" + addr);
    }
  }
  if (!known.empty())
    return fail(
        Code::kConflict, "known_addr",
        fmt::format("one or more nodes already exist with these addresses: {}", join(known, ", ")));
  return Response::text(
      "discovery is not built: clusterctl node add NAME --addr ADDRESS, or POST /monitor/event\n",
      501);
}

}  // namespace

Status check_no_active_job(const Controller& c) {
  const auto now = c.state();
  for (const auto& [id, job] : now->jobs) {
    if (job::is_final(job->state)) continue;
    return fail(Code::kConflict, "active_job",
                fmt::format("there is already an active job: {} ({}, {})", job->title, id,
                            job_status(job->state)),
                "try again when it has ended");
  }
  return {};
}

void add_work_routes(Router& router, Controller& c, const std::shared_ptr<OneAtATime>& one) {
  for (const Way& way : ways()) {
    const std::string kind(way.kind);
    const auto handler = [&c, one, kind](const Request& r) { return work(c, *one, kind, r); };
    router.post("/" + kind + "/nodes", handler);
    router.post("/" + kind + "/node/{name}", handler);
  }
  router.post("/discover/nodes", [&c](const Request& r) { return discover(c, r); });
}

}  // namespace clusterctl::api::compat
