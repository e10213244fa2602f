// Brings a store file into a state that can be used: creates, checks, copies beside and migrates.
// Called once, at start, by the thread that opens the store, with the lock of the file already
// held.
#pragma once

#include "store/sqlite_store_db.h"

namespace clusterctl::store {

// Settings of the connection, identity of the file, integrity, schema. On success the file has the
// schema of this program.
Result<Database> open_checked(const fs::path& file);

}  // namespace clusterctl::store
