// Durable key-value batches with compare-and-set. Only the controller commits. Any thread may call;
// commits are serialised.
//
// Keys: meta/schema, cluster, globals, nodes/<id>, jobs/<id>, jobs/<id>/nodes/<node>, plans/<id>,
// events/<%020d>, secrets/<name>, tokens/<id>. Values are JSON texts with a field "v". Every back
// end enforces the limits below (a distributed store has them by nature), so that no caller grows
// past what a later back end can take.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::store {

inline constexpr size_t kMaxOperations = 100;
inline constexpr size_t kMaxBatchBytes = 1 << 20;  // keys and values together
inline constexpr size_t kMaxValueBytes = 512 << 10;
inline constexpr int kSchema = 1;

struct Record {
  std::string key;
  std::string value;
  uint64_t revision = 0;  // grows with every commit of this key; never 0 for an existing record
};

// One change. `expected`: nullopt = whatever is there, 0 = the key must not exist, else exactly
// this revision.
struct Operation {
  std::string key;
  std::optional<std::string> value;  // nullopt: delete
  std::optional<uint64_t> expected;
};

class Store {
 public:
  virtual ~Store() = default;
  // All records whose key begins with `prefix`, sorted by key.
  virtual Result<std::vector<Record>> load(std::string_view prefix) = 0;
  // All or nothing, durable when it returns; the new revision of every record written is the
  // returned one. kStale ("revision") when an expectation does not hold, kTooLarge ("batch") when a
  // limit is passed, kUnavailable ("no_space") when the disk is full.
  virtual Result<uint64_t> commit(const std::vector<Operation>& batch) = 0;
};

// Forgets everything at the end: unit tests, and the reference for the contract.
std::unique_ptr<Store> make_memory_store();

// SQLite in WAL mode with synchronous=FULL, opened exclusively for this process. Clear Errors for:
// a second daemon on the same file (kConflict "second_daemon"), a newer schema ("newer_schema"), a
// damaged file ("damaged"). An older schema is copied beside and migrated.
Result<std::unique_ptr<Store>> open_sqlite_store(const fs::path& file);

}  // namespace clusterctl::store
