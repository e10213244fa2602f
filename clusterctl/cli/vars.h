// Variables as people type them: -e with a JSON object or @file, and name=value. Pure but for
// reading named files; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace clusterctl::cli {

// Each text is a JSON object, or "@FILE" (JSON, or YAML when so named). Later wins, shallow. Blank
// text is {}.
Result<Json> parse_extra_vars(const std::vector<std::string>& texts);
// "name=value": the value is JSON when it reads as a whole number, true, false, null, a quoted
// text, a list or an object; else it is text (also 20.10: a version must keep its digits). "name-"
// is null when `removals`.
Result<Json> parse_assignments(const std::vector<std::string>& texts, bool removals);
// "name=value" with text values only; "name-" is null when `removals`.
Result<Json> parse_labels(const std::vector<std::string>& texts, bool removals);

}  // namespace clusterctl::cli
