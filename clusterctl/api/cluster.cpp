// The cluster as a whole.
#include "api/resources.h"
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

}  // namespace

void add_cluster_routes(Router& router, Controller& c, const notify::Notifier* notifier) {
  router.get("/v1/status", [&c, notifier](const Request&) -> Result<Response> {
    return Response::json(status(c, notifier));
  });
  router.get("/v1/notifications", [notifier](const Request&) -> Result<Response> {
    return Response::json(notifier ? notifier->view() : Json{{"receivers", Json::array()}});
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
}

}  // namespace clusterctl::api
