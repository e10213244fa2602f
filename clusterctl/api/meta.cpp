#include "api/openapi.h"
#include "api/resources.h"
#include "controller/views.h"

namespace clusterctl::api {

using controller::Controller;

void add_meta_routes(Router& router, Controller& c, About about) {
  router.get("/v1/status", [&c](const Request&) -> Result<Response> {
    return Response::json(controller::status_view(*c.state(), c.catalog()));
  });
  router.get("/v1/cluster", [&c](const Request&) -> Result<Response> {
    const auto cluster = c.fleet()->cluster;
    return Response::json({{"id", cluster.id},
                           {"name", cluster.name},
                           {"accept_policy", cluster.accept_policy},
                           {"max_unavailable", cluster.max_unavailable},
                           {"host_groups", c.catalog().host_group_names()}});
  });
  router.get("/v1/inventory", [&c](const Request&) -> Result<Response> {
    return Response::json(
        controller::inventory_view(*c.state(), c.catalog(), c.settings().run_defaults.pki_dir));
  });
  router.get("/v1/version", [about](const Request&) -> Result<Response> {
    return Response::json({{"version", about.version},
                           {"api", 1},
                           {"ansible", about.ansible},
                           {"playbooks", about.playbooks}});
  });
  router.get("/healthz", [](const Request&) -> Result<Response> { return Response::text("ok\n"); });
  // The router is filled before the listeners open, and those open after recovery: who gets an
  // answer gets a ready daemon.
  router.get("/readyz",
             [](const Request&) -> Result<Response> { return Response::text("ready\n"); });
}

void add_routes(Router& router, Controller& controller, About about) {
  add_node_routes(router, controller);
  add_job_routes(router, controller);
  add_global_routes(router, controller);
  add_event_routes(router, controller);
  add_meta_routes(router, controller, std::move(about));
  add_openapi_route(router);
}

}  // namespace clusterctl::api
