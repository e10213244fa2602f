#include <fmt/format.h>

#include "base/annotations.h"
#include "store/batch.h"
#include "store/sqlite_store_open.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

// The smallest text greater than every text with this prefix; empty when there is none.
std::string after_prefix(std::string_view prefix) {
  std::string out(prefix);
  while (!out.empty() && static_cast<unsigned char>(out.back()) == 0xff) out.pop_back();
  if (!out.empty()) ++out.back();
  return out;
}

class SqliteStore final : public Store {
 public:
  SqliteStore(FileLock lock, Database db) : lock_(std::move(lock)), db_(std::move(db)) {}

  Result<std::vector<Record>> load(std::string_view prefix) override {
    MutexLock lock(mutex_);
    auto statement = db_.prepare(
        "SELECT key, value, revision FROM record WHERE key >= ?1 AND (?2 = '' OR key < ?2) ORDER "
        "BY key");
    if (!statement) return fail(statement.error());
    const std::string end = after_prefix(prefix);
    statement->bind(1, prefix).bind(2, end);
    std::vector<Record> out;
    for (;;) {
      auto row = statement->step();
      if (!row) return fail(row.error());
      if (!*row) return out;
      out.push_back(
          {statement->text(0), statement->text(1), static_cast<uint64_t>(statement->number(2))});
    }
  }

  Result<uint64_t> commit(const std::vector<Operation>& batch) override {
    if (auto ok = check_batch(batch); !ok) return fail(ok.error());
    MutexLock lock(mutex_);
    if (auto begun = db_.begin(); !begun) return fail(begun.error());
    const auto revision = apply(batch);
    const auto done = db_.end(revision ? Status() : fail(revision.error()));
    if (!done) return fail(done.error());
    return revision;
  }

 private:
  Result<uint64_t> apply(const std::vector<Operation>& batch) REQUIRES(mutex_) {
    if (auto ok = check_expectations(batch); !ok) return fail(ok.error());
    const auto now = db_.number("SELECT revision FROM counter");
    if (!now) return fail(now.error());
    if (batch.empty()) return static_cast<uint64_t>(*now);
    const uint64_t revision = static_cast<uint64_t>(*now) + 1;
    if (auto ok = write(batch, revision); !ok) return fail(ok.error());
    return revision;
  }

  Status check_expectations(const std::vector<Operation>& batch) REQUIRES(mutex_) {
    auto find = db_.prepare("SELECT revision FROM record WHERE key = ?1");
    if (!find) return fail(find.error());
    for (const Operation& operation : batch) {
      if (!operation.expected) continue;
      find->reset();
      const auto row = find->bind(1, operation.key).step();
      if (!row) return fail(row.error());
      const uint64_t found = *row ? static_cast<uint64_t>(find->number(0)) : 0;
      if (found != *operation.expected) return stale(operation, found);
    }
    return {};
  }

  Status write(const std::vector<Operation>& batch, uint64_t revision) REQUIRES(mutex_) {
    const auto number = static_cast<int64_t>(revision);
    auto put =
        db_.prepare("INSERT OR REPLACE INTO record (key, value, revision) VALUES (?1, ?2, ?3)");
    auto erase = db_.prepare("DELETE FROM record WHERE key = ?1");
    auto count = db_.prepare("UPDATE counter SET revision = ?1");
    if (!put) return fail(put.error());
    if (!erase) return fail(erase.error());
    if (!count) return fail(count.error());
    for (const Operation& operation : batch) {
      Statement& statement = operation.value ? *put : *erase;
      statement.reset();
      statement.bind(1, operation.key);
      if (operation.value) statement.bind(2, *operation.value).bind(3, number);
      if (auto row = statement.step(); !row) return fail(row.error());
    }
    if (auto row = count->bind(1, number).step(); !row) return fail(row.error());
    return {};
  }

  const FileLock lock_;  // released after the file is closed
  Mutex mutex_;
  Database db_ GUARDED_BY(mutex_);
};

Status check_place(const fs::path& file) {
  std::error_code ec;
  if (fs::status(file.parent_path(), ec).type() == fs::file_type::not_found) {
    return fail(Code::kNotFound, "no_such_file",
                fmt::format("cannot open the store {}: the folder {} does not exist", file.string(),
                            file.parent_path().string()),
                "create it, or use another --state-dir");
  }
  if (fs::exists(file, ec) && !fs::is_regular_file(file, ec)) {
    return fail(Code::kInvalid, "not_a_file",
                fmt::format("the store {} is not a regular file", file.string()));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const fs::path& path) {
  std::error_code ec;
  const fs::path file = fs::absolute(path, ec);
  if (auto ok = check_place(file); !ok) return fail(ok.error());
  auto lock = FileLock::acquire(file.string() + ".lock");
  if (!lock && lock.error().reason == "locked") {
    return fail(Code::kConflict, "second_daemon",
                fmt::format("another clusterctl daemon uses {}", file.string()),
                "stop it first, or use another --state-dir");
  }
  if (!lock) {
    Error error = lock.error();
    error.hint = "the daemon's user must be able to write the state directory";
    return fail(std::move(error));
  }
  auto db = open_checked(file);
  if (!db) return fail(db.error());
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(*lock), std::move(*db)));
}

}  // namespace clusterctl::store
