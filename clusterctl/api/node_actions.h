// What is done to one node's record beside PATCH: accept, reject, forget its host key; and its
// history. Called by add_node_routes.
#pragma once

#include "api/router.h"
#include "controller/controller.h"

namespace clusterctl::api {

void add_node_action_routes(Router& router, controller::Controller& controller);

}  // namespace clusterctl::api
