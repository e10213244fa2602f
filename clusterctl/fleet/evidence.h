// What machines say of themselves, read from a request: bounded, plain text, or refused. Pure; any
// thread.
#pragma once

#include <string>

#include "base/json.h"
#include "fleet/node.h"
#include "fleet/problems.h"

namespace clusterctl::fleet {

inline constexpr size_t kMaxEvidence = 128;  // characters of a serial
inline constexpr size_t kMaxCards = 64;

// Text of machines that may be kept and shown: printable, nothing that could be a template.
bool is_plain_evidence(std::string_view text);
// "serial", "uuid" and "macs" of `machine`; everything wrong is noted in `problems`.
Identity parse_evidence(const Json& machine, const std::string& place, Problems& problems);

}  // namespace clusterctl::fleet
