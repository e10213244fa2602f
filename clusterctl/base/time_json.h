// Times as members of JSON views. Pure, any thread.
#pragma once

#include <optional>

#include "base/json.h"
#include "base/time.h"

namespace clusterctl {

inline Json time_or_null(const std::optional<Time>& time) {
  return time ? Json(format_time(*time)) : Json();
}

}  // namespace clusterctl
