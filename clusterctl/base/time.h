// RFC 3339 in UTC with milliseconds ("2026-11-30T10:26:02.123Z"), the only time format on the wire
// and on disk.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace clusterctl {

std::string format_time(Time t);
// Any offset is understood: "…Z", "…+01:00".
Result<Time> parse_time(std::string_view text);

// "90", "90s", "10m", "2h", "1d": at least a second, at most 365 days. kInvalid "bad_duration".
Result<std::chrono::seconds> parse_duration(std::string_view text);

// "43s", "2m05s", "1h02m": for people.
std::string format_duration(std::chrono::milliseconds d);

}  // namespace clusterctl
