// What monitors tell, and what the operator says about the machine behind a node.
#include "api/body.h"
#include "api/node_texts.h"
#include "api/resources.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

Result<Response> take_event(Controller& c, const Request& request) {
  auto body = json_body(request);
  if (!body) return fail(body.error());
  const auto seen = c.monitor_event(*body);
  if (!seen) return fail(seen.error());
  Json nodes = Json::array();
  for (const controller::Seen& s : *seen) {
    nodes.push_back({{"name", s.label},
                     {"node", s.node},
                     {"id", s.id},
                     {"finding", fleet::word(s.finding)},
                     {"message", s.message}});
  }
  return Response::json({{"nodes", std::move(nodes)}});
}

}  // namespace

void add_monitor_routes(Router& router, Controller& c) {
  router.post("/v1/monitor/event", [&c](const Request& r) { return take_event(c, r); });
  router.post("/v1/nodes/{n}/confirm-hardware",
              [&c](const Request& r) -> Result<Response> {
                if (auto ok = no_body(r); !ok) return fail(ok.error());
                const auto versions = if_match(r);
                if (!versions) return fail(versions.error());
                const auto dry_run = r.query_bool("dry_run");
                if (!dry_run) return fail(dry_run.error());
                const auto node = c.confirm_hardware(r.param("n"), *versions, *dry_run);
                if (!node) return fail(node.error());
                return node_answer(*node, c);
              },
              {"dry_run"});
  router.post("/v1/nodes/{n}/rename",
              [&c](const Request& r) -> Result<Response> {
                auto body = json_body(r);
                if (!body) return fail(body.error());
                const auto versions = if_match(r);
                if (!versions) return fail(versions.error());
                const auto dry_run = r.query_bool("dry_run");
                if (!dry_run) return fail(dry_run.error());
                const auto node = c.rename_node(r.param("n"), *body, *versions, *dry_run);
                if (!node) return fail(node.error());
                return node_answer(*node, c);
              },
              {"dry_run"});
}

}  // namespace clusterctl::api
