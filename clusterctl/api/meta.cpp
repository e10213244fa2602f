#include "api/openapi.h"
#include "api/resources.h"

namespace clusterctl::api {

using controller::Controller;

void add_meta_routes(Router& router, Controller& c, About about) {
  router.get("/v1/version", [about](const Request&) -> Result<Response> {
    return Response::json({{"version", about.version},
                           {"api", 1},
                           {"ansible", about.ansible},
                           {"playbooks", about.playbooks},
                           {"ca_fingerprint", about.ca_fingerprint}});
  });
  router.get("/healthz", [](const Request&) -> Result<Response> { return Response::text("ok\n"); });
  // The router is filled before the listeners open, and those open after recovery: who gets an
  // answer gets a ready daemon, as long as that can store what it is asked for.
  router.get("/readyz", [&c](const Request&) -> Result<Response> {
    if (auto trouble = c.store_trouble()) return fail(std::move(*trouble));
    return Response::text("ready\n");
  });
}

void add_routes(Router& router, Controller& controller, About about,
                const notify::Notifier* notifier) {
  add_node_routes(router, controller);
  add_monitor_routes(router, controller);
  add_join_routes(router, controller);
  add_job_routes(router, controller);
  add_plan_routes(router, controller);
  add_global_routes(router, controller);
  add_event_routes(router, controller);
  add_cluster_routes(router, controller, notifier);
  add_token_routes(router, controller);
  add_meta_routes(router, controller, std::move(about));
  add_openapi_route(router);
}

}  // namespace clusterctl::api
