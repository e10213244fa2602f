// Plain scalars of YAML 1.1 as Ansible's reader (PyYAML) takes them. Pure; any thread.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace clusterctl {

// yes/no/on/off, 0b, octal, 0x, underscores, sexagesimal numbers, fractions with a sign in their
// exponent. A date is its text. What has no value in JSON or loses digits (.inf, .nan, a date with
// a time) is an Error; an integer beyond 64 bits is its text (docs/decisions/big-integers.md).
Result<Json> resolve_yaml_1_1(std::string_view text);

}  // namespace clusterctl
