#include "store/sqlite_store_db.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/strings.h"

namespace clusterctl::store {
namespace {

// What the last failure on this connection means to an operator.
Error sqlite_error(sqlite3* db, int rc) {
  const char* name = sqlite3_db_filename(db, "main");
  const std::string file = name && *name ? name : "the store";
  const int os_error = sqlite3_system_errno(db);
  const std::string detail = one_line(sqlite3_errmsg(db));
  const int primary = rc & 0xff;
  const bool no_space = primary == SQLITE_FULL ||
                        (primary == SQLITE_IOERR && (os_error == ENOSPC || os_error == EDQUOT));
  if (no_space) {
    return Error{Code::kUnavailable,
                 "no_space",
                 fmt::format("cannot write {}: the disk is full", file),
                 "free space in the state directory; nothing was changed",
                 {}};
  }
  switch (primary) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Error{Code::kInternal,
                   "damaged",
                   fmt::format("{} is damaged: {}", file, detail),
                   "restore it from a backup, or move it away to start empty",
                   {}};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error{Code::kConflict,
                   "second_daemon",
                   fmt::format("{} is in use by another program", file),
                   "stop it first, or use another --state-dir",
                   {}};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error{Code::kForbidden,
                   "not_writable",
                   fmt::format("cannot open {}: {}", file, detail),
                   "the daemon's user must be able to write the file and its folder",
                   {}};
    default:
      return Error{
          Code::kInternal, "store", fmt::format("{}: {} (SQLite {})", file, detail, rc), "", {}};
  }
}

}  // namespace

Statement& Statement::bind(int index, std::string_view text) {
  const int rc = sqlite3_bind_text64(statement_.get(), index, text.data() ? text.data() : "",
                                     text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (rc != SQLITE_OK) bind_rc_ = rc;
  return *this;
}

Statement& Statement::bind(int index, int64_t number) {
  const int rc = sqlite3_bind_int64(statement_.get(), index, number);
  if (rc != SQLITE_OK) bind_rc_ = rc;
  return *this;
}

Result<bool> Statement::step() {
  sqlite3* db = sqlite3_db_handle(statement_.get());
  if (bind_rc_ != SQLITE_OK) return fail(sqlite_error(db, bind_rc_));
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return fail(sqlite_error(db, rc));
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  bind_rc_ = SQLITE_OK;
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (!bytes) return "";
  return std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

Result<Database> Database::open(const fs::path& file) {
  sqlite3* raw = nullptr;
  const int rc =
      sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);
  if (!raw) return fail(Code::kInternal, "store", "SQLite has no memory");
  if (rc != SQLITE_OK) {
    Error error = sqlite_error(raw, rc);
    error.message = fmt::format("cannot open {}: {}", file.string(), one_line(sqlite3_errmsg(raw)));
    return fail(std::move(error));
  }
  sqlite3_extended_result_codes(raw, 1);
  return db;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int rc =
      sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (rc != SQLITE_OK) return fail(sqlite_error(db_.get(), rc));
  return Statement(raw);
}

Status Database::run(const std::string& sql) {
  const int rc = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return fail(sqlite_error(db_.get(), rc));
  return {};
}

Status Database::end(Status done) {
  if (done) done = run("COMMIT");
  // SQLite has rolled back by itself after some failures; asking twice would be an error.
  if (!done && sqlite3_get_autocommit(db_.get()) == 0) (void)run("ROLLBACK");
  return done;
}

Result<int64_t> Database::number(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return fail(statement.error());
  auto row = statement->step();
  if (!row) return fail(row.error());
  return *row ? statement->number(0) : 0;
}

Result<std::string> Database::text(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return fail(statement.error());
  auto row = statement->step();
  if (!row) return fail(row.error());
  return *row ? statement->text(0) : "";
}

}  // namespace clusterctl::store
