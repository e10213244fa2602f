// The parts of contiv's interface, one file each; compat.cpp puts them together. The handlers are
// called by all workers at once.
#pragma once

#include <memory>

#include "api/compat/compat.h"
#include "base/annotations.h"

namespace clusterctl::api::compat {

// contiv's jobs come one at a time: between the look whether one is active and the start of another
// no second request may come.
struct OneAtATime {
  Mutex mutex;
};

// 200 without a body.
inline Response done() {
  return Response{};
}

// kConflict when a job of the daemon has not ended.
Status check_no_active_job(const controller::Controller& controller);

void add_work_routes(Router& router, controller::Controller& controller,
                     const std::shared_ptr<OneAtATime>& one);
void add_monitor_route(Router& router, controller::Controller& controller);
void add_info_routes(Router& router, controller::Controller& controller);
void add_setting_routes(Router& router, controller::Controller& controller,
                        const std::shared_ptr<OneAtATime>& one, Settings settings);

}  // namespace clusterctl::api::compat
