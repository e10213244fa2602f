// `clusterctl inventory import`: what differs from the daemon's records, and the requests that
// settle it. One thread.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "inventory/inventory.h"

namespace clusterctl::cli {

struct Change {
  std::string name;
  enum class Kind { kCreate, kUpdate, kUnchanged } kind = Kind::kUnchanged;
  Json body;  // spec to create, or merge patch of the spec
};

// Merge patch (RFC 7386) that makes `to` out of `from` for the members `to` has; null when there is
// nothing to do. Objects two levels down (one variable's value) become exactly what `to` says.
Json patch_for(const Json& from, const Json& to);

// Changes for all drafts; an Error with every problem that can be known before anything is sent.
Result<std::vector<Change>> compare(const std::vector<inventory::NodeDraft>& drafts,
                                    const Json& nodes);

// Creates first, then updates, then globals. When one is refused, what was created is removed
// again.
Status apply(Session& session, const std::vector<Change>& changes, const Json& globals_patch);

}  // namespace clusterctl::cli
