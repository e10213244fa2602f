// The file, folder or standard input of `plan` and `apply` as a document for the daemon. Reads
// files; what is outside the documented subset (docs/apply.md) goes through ansible-inventory. One
// thread.
#pragma once

#include <string>

#include "cli/session.h"
#include "inventory/inventory.h"

namespace clusterctl::cli {

// `path`: "-" is standard input. `reader`: "auto", "own" or "ansible".
Result<inventory::Inventory> read_wanted(Session& session, const std::string& path,
                                         const std::string& reader);

// {"nodes": [{"name", "spec"}], "globals"?} of docs/rest.md.
Json document_of(const inventory::Inventory& inventory);

}  // namespace clusterctl::cli
