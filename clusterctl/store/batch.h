// What every back end refuses before it looks at its records, so that the limits are the same
// everywhere. Pure, any thread.
#pragma once

#include <vector>

#include "store/store.h"

namespace clusterctl::store {

// kTooLarge ("batch") when a limit is passed; kInvalid ("batch") for an empty key or a key named
// twice.
Status check_batch(const std::vector<Operation>& batch);

// The answer to an expectation that does not hold. `found` is 0 when there is no such key.
tl::unexpected<Error> stale(const Operation& operation, uint64_t found);

}  // namespace clusterctl::store
