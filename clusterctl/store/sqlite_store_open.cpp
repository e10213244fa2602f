#include "store/sqlite_store_open.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/log.h"
#include "base/strings.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

// "clct": tells our files from any other SQLite file. The schema number is SQLite's own
// user_version, because it can be read whatever a later version does to the tables.
constexpr int64_t kApplicationId = 0x636c6374;

// The revision counter has a table of its own: a revision is never used twice, also after the
// newest record was deleted.
constexpr std::string_view kCreate = R"(
  CREATE TABLE record (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, revision INTEGER NOT NULL) STRICT;
  CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL) STRICT;
  INSERT INTO counter (id, revision) VALUES (1, 0);
)";

// The step from schema `from` to `from` + 1. All steps that a file needs run in one transaction.
struct Migration {
  int from;
  std::string_view sql;
};

constexpr std::array kMigrations{
    Migration{0, R"(
      ALTER TABLE record RENAME TO record_0;
      CREATE TABLE record (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, revision INTEGER NOT NULL) STRICT;
      INSERT INTO record (key, value, revision) SELECT key, CAST(value AS TEXT), 1 FROM record_0;
      DROP TABLE record_0;
      CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL) STRICT;
      INSERT INTO counter (id, revision) VALUES (1, 1);
    )"},
};
static_assert(kMigrations.size() == kSchema, "every older schema needs its step forward");

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

Status damaged(const fs::path& file, std::string_view what) {
  return fail(Code::kInternal, "damaged",
              fmt::format("{} is damaged: {}", file.string(), one_line(what)),
              "restore it from a backup, or move it away to start empty");
}

Status stamp(Database& db) {
  return db.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId,
                            kSchema));
}

Status create_tables(Database& db) {
  return db.transaction([&]() -> Status {
    if (auto made = db.run(std::string(kCreate)); !made) return made;
    return stamp(db);
  });
}

// A complete copy at <file>.schema-N.backup; a copy that was interrupted is never taken for one.
Status copy_beside(Database& db, const fs::path& file, int64_t schema) {
  const fs::path target = fmt::format("{}.schema-{}.backup", file.string(), schema);
  const fs::path temporary = target.string() + ".tmp";
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (auto made = create_file(temporary, "", 0600); !made) return made;
  if (auto copied = db.run("VACUUM INTO " + quoted(temporary.string())); !copied) return copied;
  if (::rename(temporary.c_str(), target.c_str()) != 0) return fail(errno_error("write", target));
  log::info("the store {} has schema {}; kept a copy as {}", file.string(), schema,
            target.string());
  return sync_dir(target.parent_path());
}

Status migrate(Database& db, const fs::path& file, int64_t schema) {
  if (auto copied = copy_beside(db, file, schema); !copied) return copied;
  auto done = db.transaction([&]() -> Status {
    for (const Migration& step : kMigrations) {
      if (step.from < schema) continue;
      if (auto ok = db.run(std::string(step.sql)); !ok) return ok;
    }
    return stamp(db);
  });
  if (done) log::info("migrated {} from schema {} to {}", file.string(), schema, kSchema);
  return done;
}

// Nothing is written before it is known that the file is ours and not from a later version.
Result<int64_t> identify(Database& db, const fs::path& file) {
  const auto tables = db.number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables;
  if (*tables == 0) return kSchema;
  const auto application = db.number("PRAGMA application_id");
  if (!application) return application;
  if (*application != kApplicationId) {
    return fail(Code::kRefused, "foreign_file",
                fmt::format("{} is not a store of clusterctl", file.string()),
                "it was left as it is; use another --state-dir");
  }
  const auto schema = db.number("PRAGMA user_version");
  if (schema && (*schema > kSchema || *schema < 0)) {
    return fail(Code::kRefused, "newer_schema",
                fmt::format("{} was written by a newer clusterctl (schema {}, this one knows {})",
                            file.string(), *schema, kSchema),
                "install that version again, or restore the copy made before the upgrade");
  }
  return schema;
}

// WAL with FULL: a commit that returned survives a power cut. Exclusive: no other process can slip
// in between two commits, and no shared-memory file is needed.
Status configure(Database& db, const fs::path& file) {
  if (::chmod(file.c_str(), 0600) != 0) return fail(errno_error("protect", file));
  const auto mode = db.text("PRAGMA journal_mode = WAL");
  if (!mode) return fail(mode.error());
  if (*mode != "wal") {
    return fail(Code::kInternal, "store",
                fmt::format("{} cannot use a write-ahead log on this file system", file.string()));
  }
  return db.run("PRAGMA synchronous = FULL");
}

Status check_content(Database& db, const fs::path& file) {
  const auto checked = db.text("PRAGMA quick_check(1)");
  if (!checked) return fail(checked.error());
  if (*checked != "ok") return damaged(file, *checked);
  return {};
}

Status check_tables(Database& db, const fs::path& file) {
  const auto counters = db.number(
      "SELECT count(*) FROM counter, (SELECT count(key || value || revision) FROM record)");
  if (!counters || *counters != 1) return damaged(file, "its tables are not those of its schema");
  return {};
}

}  // namespace

Result<Database> open_checked(const fs::path& file) {
  // Created here, not by SQLite, to be 0600 from the first moment; its companions inherit the mode.
  // The descriptor is closed before SQLite opens the file: closing any descriptor of a file drops
  // the process's POSIX locks on it.
  auto made = create_file(file, "", 0600);
  if (!made && made.error().reason != "exists") return fail(made.error());
  auto db = Database::open(file);
  if (!db) return db;
  const std::string settings =
      "PRAGMA busy_timeout = 1000; PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF; "
      "PRAGMA cell_size_check = ON";
  if (auto ok = db->run(settings); !ok) return fail(ok.error());
  const auto schema = identify(*db, file);
  if (!schema) return fail(schema.error());
  if (auto ok = configure(*db, file); !ok) return fail(ok.error());
  if (auto ok = check_content(*db, file); !ok) return fail(ok.error());
  const auto tables = db->number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return fail(tables.error());
  Status ready = *tables == 0        ? create_tables(*db)
                 : *schema < kSchema ? migrate(*db, file, *schema)
                                     : Status();
  if (ready) ready = check_tables(*db, file);
  if (ready) ready = sync_dir(file.parent_path());
  if (!ready) return fail(ready.error());
  return db;
}

}  // namespace clusterctl::store
