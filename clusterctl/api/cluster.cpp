// The cluster as a whole.
#include "api/body.h"
#include "api/resources.h"
#include "controller/cluster_views.h"
#include "controller/views.h"

namespace clusterctl::api {
namespace {

using controller::Controller;

Json status(const Controller& c, const notify::Notifier* notifier) {
  Json out = controller::status_view(*c.state(), c.catalog());
  std::vector<Problem> more;
  if (const auto trouble = c.store_trouble())
    more.push_back({trouble->reason, trouble->message, trouble->hint, ""});
  if (notifier) {
    for (Problem& p : notifier->problems()) more.push_back(std::move(p));
  }
  for (const Problem& p : more)
    out["problems"].push_back(
        {{"code", p.code}, {"message", p.message}, {"hint", p.hint}, {"node", p.node}});
  return out;
}

Response answer(const fleet::Cluster& cluster, const Controller& c) {
  return Response::json({{"id", cluster.id},
                         {"name", cluster.name},
                         {"accept_policy", cluster.accept_policy},
                         {"max_unavailable", cluster.max_unavailable},
                         {"drift_policy", cluster.drift_policy},
                         {"version", cluster.version},
                         {"host_groups", c.catalog().host_group_names()},
                         {"ssh_public_key", c.settings().ssh_public_key}})
      .with("ETag", etag(static_cast<int64_t>(cluster.version)));
}

}  // namespace

void add_cluster_routes(Router& router, Controller& c, const notify::Notifier* notifier) {
  router.get("/v1/status", [&c, notifier](const Request&) -> Result<Response> {
    return Response::json(status(c, notifier));
  });
  router.get("/v1/notifications", [notifier](const Request&) -> Result<Response> {
    return Response::json(notifier ? notifier->view() : Json{{"receivers", Json::array()}});
  });
  router.get("/v1/cluster",
             [&c](const Request&) -> Result<Response> { return answer(c.fleet()->cluster, c); });
  router.patch("/v1/cluster",
               [&c](const Request& r) -> Result<Response> {
                 auto body = json_body(r);
                 if (!body) return fail(body.error());
                 const auto versions = if_match(r);
                 if (!versions) return fail(versions.error());
                 const auto dry_run = r.query_bool("dry_run");
                 if (!dry_run) return fail(dry_run.error());
                 auto cluster = c.patch_cluster(*body, *versions, *dry_run);
                 if (!cluster) return fail(cluster.error());
                 return answer(*cluster, c);
               },
               {"dry_run"});
  router.get("/v1/managers", [&c](const Request&) -> Result<Response> {
    return Response::json(controller::managers_view(*c.state(), c.catalog()));
  });
  router.get("/v1/services", [&c](const Request&) -> Result<Response> {
    return Response::json(controller::services_view(*c.state(), c.catalog()));
  });
  router.get("/v1/inventory", [&c](const Request&) -> Result<Response> {
    return Response::json(
        controller::inventory_view(*c.state(), c.catalog(), c.settings().run_defaults.pki_dir));
  });
}

}  // namespace clusterctl::api
