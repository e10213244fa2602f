// Job records as JSON: the REST view (docs/rest.md) and the full one for the store. Pure, any
// thread.
#pragma once

#include <optional>

#include "base/json.h"
#include "fleet/snapshot.h"
#include "job/job.h"
#include "job/locks.h"

namespace clusterctl::job {

// `waiting`: what a queued job waits for. Node ids become names where the fleet still knows them.
Json to_json(const Job& job, const fleet::Snapshot& fleet,
             const std::optional<Conflict>& waiting = std::nullopt);

Json to_record(const Job& job);
Result<Job> from_record(const Json& record);

}  // namespace clusterctl::job
