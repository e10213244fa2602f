// What only the SQLite back end can get wrong: files, second daemons, damage, schemas, kill -9,
// full disks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "fakes/temp_dir.h"
#include "operations.h"
#include "store/store.h"

namespace clusterctl::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Runs SQL on a file that no store has open, as another program would.
void sql(const fs::path& file, const std::string& text) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << (message ? message : "");
  sqlite3_free(message);
  sqlite3_close(db);
}

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

// One line, the file named, a hint: what every start-up error owes the operator.
void expect_clear(const Error& error, const fs::path& file) {
  EXPECT_THAT(error.message, HasSubstr(file.string()));
  EXPECT_THAT(error.line(), Not(HasSubstr("\n")));
  EXPECT_FALSE(error.hint.empty()) << error.message;
}

class SqliteStore : public ::testing::Test {
 protected:
  Error refused() {
    auto store = open_sqlite_store(file_);
    EXPECT_FALSE(store);
    if (store) return {};
    expect_clear(store.error(), file_);
    return store.error();
  }
  std::unique_ptr<Store> opened() {
    auto store = open_sqlite_store(file_);
    EXPECT_TRUE(store) << store.error().line();
    return store ? std::move(*store) : nullptr;
  }
  std::string value(Store& store, const std::string& key) {
    const auto records = store.load(key);
    return records && records->size() == 1 ? records->front().value : "(none)";
  }

  TempDir dir_;
  fs::path file_ = dir_.path() / "store.db";
};

TEST_F(SqliteStore, SurvivesAReopenWithRevisions) {
  uint64_t revision = 0;
  {
    const auto store = opened();
    revision = *store->commit({put("a", "1")});
    ASSERT_TRUE(store->commit({{"b", "x", std::nullopt}}));
    ASSERT_TRUE(store->commit({{"b", std::nullopt, std::nullopt}}));
  }
  const auto store = opened();
  EXPECT_EQ(store->load("a")->front().revision, revision);
  EXPECT_EQ(*store->commit({put("c", "1")}), revision + 3)
      << "also the revision of a deleted record is not used again";
}

TEST_F(SqliteStore, OnlyTheOwnerMayReadTheFiles) {
  const mode_t old = ::umask(0);
  const auto store = opened();
  ASSERT_TRUE(store->commit({put("secrets/x", "1")}));
  ::umask(old);
  for (const auto& entry : fs::directory_iterator(dir_.path()))
    EXPECT_EQ(mode_of(entry.path()), 0600u) << entry.path();
  EXPECT_TRUE(fs::exists(file_.string() + "-wal"));
}

TEST_F(SqliteStore, AFileThatWasOpenToOthersIsClosed) {
  opened();
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  opened();
  EXPECT_EQ(mode_of(file_), 0600u);
}

TEST_F(SqliteStore, ASecondDaemonIsToldSoAtOnce) {
  const auto first = opened();
  const auto start = std::chrono::steady_clock::now();
  const Error error = refused();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_EQ(error.code, Code::kConflict);
  EXPECT_EQ(error.reason, "second_daemon");
  EXPECT_TRUE(first->commit({put("a", "1")})) << "the first one is not disturbed";
}

TEST_F(SqliteStore, ASecondDaemonInAnotherProcessIsToldSo) {
  const auto first = opened();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = open_sqlite_store(file_);
    ::_exit(!second && second.error().reason == "second_daemon" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SqliteStore, AnotherProgramCannotChangeTheFileMeanwhile) {
  const auto store = opened();
  ASSERT_TRUE(store->commit({put("a", "1")}));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "DELETE FROM record", nullptr, nullptr, nullptr) & 0xff, SQLITE_BUSY);
  sqlite3_close(db);
  EXPECT_EQ(value(*store, "a"), "1");
}

TEST_F(SqliteStore, AnotherProgramThatHoldsTheFileIsNamedAsTheReason) {
  opened();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE; DELETE FROM record", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(refused().reason, "second_daemon");
  sqlite3_close(db);
}

TEST_F(SqliteStore, ALockFileLeftByADeadDaemonDoesNotMatter) {
  dir_.write("store.db.lock", "");
  opened();
}

TEST_F(SqliteStore, ANewerSchemaIsRefusedAndLeftAlone) {
  opened()->commit({put("a", "1")}).value();
  sql(file_, "PRAGMA user_version = 99; ALTER TABLE record RENAME TO things");
  const std::string before = dir_.read("store.db");
  const Error error = refused();
  EXPECT_EQ(error.reason, "newer_schema");
  EXPECT_THAT(error.message, HasSubstr("99"));
  EXPECT_EQ(dir_.read("store.db"), before);
}

TEST_F(SqliteStore, AForeignDatabaseIsRefusedAndLeftAlone) {
  sql(file_, "CREATE TABLE cookies (x)");
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  const std::string before = dir_.read("store.db");
  EXPECT_EQ(refused().reason, "foreign_file");
  EXPECT_EQ(dir_.read("store.db"), before);
  EXPECT_EQ(mode_of(file_), 0644u);
}

TEST_F(SqliteStore, WhatIsNoDatabaseIsDamaged) {
  dir_.write("store.db", std::string(8192, 'x'));
  EXPECT_EQ(refused().reason, "damaged");
  EXPECT_EQ(dir_.read("store.db"), std::string(8192, 'x'));
}

TEST_F(SqliteStore, AnEmptyFileIsANewStore) {
  dir_.write("store.db", "");
  EXPECT_TRUE(opened()->commit({put("a", "1")}));
}

// Every page but the first, one at a time, is overwritten: never a crash, never silently different
// content.
TEST_F(SqliteStore, DamagedPagesAreFound) {
  {
    const auto store = opened();
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(store->commit({put(fmt::format("nodes/{}", i), std::string(1500, 'v'))}));
  }
  const std::string good = dir_.read("store.db");
  int found = 0, pages = 0;
  for (size_t page = 4096; page + 4096 <= good.size(); page += 4096, ++pages) {
    std::string bad = good;
    for (size_t i = 0; i < 64; ++i) bad[page + i] = static_cast<char>(0xa5);
    dir_.write("store.db", bad);
    auto store = open_sqlite_store(file_);
    if (!store) {
      EXPECT_EQ(store.error().reason, "damaged") << store.error().line();
      ++found;
    }
  }
  EXPECT_GE(pages, 10);
  EXPECT_GE(found, pages - 2) << "a damaged page in the free list may go unnoticed, others not";
}

TEST_F(SqliteStore, ATruncatedFileIsFound) {
  {
    const auto store = opened();
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(store->commit({put(fmt::format("nodes/{}", i), std::string(1500, 'v'))}));
  }
  fs::resize_file(file_, fs::file_size(file_) / 2);
  EXPECT_EQ(refused().reason, "damaged");
}

TEST_F(SqliteStore, MissingTablesAreDamage) {
  opened();
  sql(file_, "DROP TABLE counter");
  EXPECT_EQ(refused().reason, "damaged");
}

// A file as schema 0 would have left it: no STRICT, no revisions.
constexpr char kSchemaZero[] =
    "PRAGMA application_id = 0x636c6374; PRAGMA user_version = 0;"
    "CREATE TABLE record (key TEXT PRIMARY KEY, value BLOB);"
    "INSERT INTO record VALUES ('cluster', '{\"v\":1}'), ('nodes/a', CAST('{\"v\":1,\"x\":2}' AS "
    "BLOB));";

TEST_F(SqliteStore, AnOlderSchemaIsCopiedBesideAndMigrated) {
  sql(file_, kSchemaZero);
  {
    const auto store = opened();
    EXPECT_EQ(value(*store, "cluster"), "{\"v\":1}");
    EXPECT_EQ(value(*store, "nodes/a"), "{\"v\":1,\"x\":2}");
    const auto revision = store->load("nodes/a")->front().revision;
    EXPECT_GT(revision, 0u);
    EXPECT_GT(*store->commit({{"nodes/a", "new", revision}}), revision);
  }
  const fs::path copy = file_.string() + ".schema-0.backup";
  EXPECT_EQ(mode_of(copy), 0600u);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(copy.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(db, "SELECT value FROM record WHERE key = 'nodes/a'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(value(*opened(), "nodes/a"), "new") << "the second start migrates nothing";
}

TEST_F(SqliteStore, AMigrationThatFailsLeavesTheOldSchema) {
  sql(file_, std::string(kSchemaZero) + "INSERT INTO record VALUES (NULL, 'no key');");
  const auto store = open_sqlite_store(file_);
  ASSERT_FALSE(store);
  EXPECT_TRUE(fs::exists(file_.string() + ".schema-0.backup"));
  sql(file_, "DELETE FROM record WHERE key IS NULL");  // works only on the old table
  EXPECT_EQ(value(*opened(), "cluster"), "{\"v\":1}");
}

TEST_F(SqliteStore, ACopyThatWasInterruptedIsDoneAgain) {
  sql(file_, kSchemaZero);
  dir_.write("store.db.schema-0.backup.tmp", "half a copy");
  opened();
  EXPECT_THAT(dir_.read("store.db.schema-0.backup"), HasSubstr("SQLite format 3"));
  EXPECT_FALSE(fs::exists(file_.string() + ".schema-0.backup.tmp"));
}

TEST_F(SqliteStore, AMissingFolderIsNamed) {
  file_ = dir_.path() / "none" / "store.db";
  EXPECT_EQ(refused().code, Code::kNotFound);
}

TEST_F(SqliteStore, AFolderInsteadOfAFileIsNamed) {
  fs::create_directory(file_);
  const auto store = open_sqlite_store(file_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("not a regular file"));
}

// Runs `work` as a user that is not root, because root may write everywhere.
template <typename Work>
int as_nobody(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setegid(65534) != 0 || ::seteuid(65534) != 0)) ::_exit(99);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(SqliteStore, AReadOnlyFolderIsAClearError) {
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0555), 0);
  EXPECT_EQ(as_nobody([&] {
              const Error error = refused();
              return error.code == Code::kForbidden && !HasFailure();
            }),
            0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
}

TEST_F(SqliteStore, AFileOfSomebodyElseIsAClearError) {
  opened();
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0777), 0);
  fs::remove(file_.string() + ".lock");
  ASSERT_EQ(::chmod(file_.c_str(), 0400), 0);
  EXPECT_EQ(as_nobody([&] {
              const Error error = refused();
              return error.code == Code::kForbidden && !HasFailure();
            }),
            0);
}

}  // namespace
}  // namespace clusterctl::store
