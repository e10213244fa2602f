#include "api/compat/compat.h"

#include "api/compat/routes.h"

namespace clusterctl::api::compat {

void add_routes(Router& router, controller::Controller& controller, Settings settings) {
  const auto one = std::make_shared<OneAtATime>();
  add_work_routes(router, controller, one);
  add_monitor_route(router, controller);
  add_info_routes(router, controller);
  add_setting_routes(router, controller, one, std::move(settings));
}

}  // namespace clusterctl::api::compat
