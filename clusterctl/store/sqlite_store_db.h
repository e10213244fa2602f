// The little of SQLite that the store needs, with owners for its handles and its result codes
// turned into Errors. A Database and its Statements belong to one caller at a time: the store
// guards them with its mutex.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::store {

// A prepared statement. Bound texts must live until it is reset.
class Statement {
 public:
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, int64_t number);
  // True: a row can be read. False: finished.
  Result<bool> step();
  void reset();
  std::string text(int column) const;
  int64_t number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_rc_ = SQLITE_OK;
};

class Database {
 public:
  // Opens an existing file for reading and writing.
  static Result<Database> open(const fs::path& file);

  Result<Statement> prepare(std::string_view sql);
  // Runs one or more statements, ignoring rows.
  Status run(const std::string& sql);
  // First column of the only row.
  Result<int64_t> number(std::string_view sql);
  Result<std::string> text(std::string_view sql);
  // A transaction: begin, work, and end with what the work gave. After any failure nothing of it is
  // left.
  Status begin() { return run("BEGIN IMMEDIATE"); }
  Status end(Status done);
  template <typename Work>
  Status transaction(Work&& work) {
    if (auto begun = begin(); !begun) return begun;
    return end(work());
  }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  explicit Database(sqlite3* db) : db_(db) {}

  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace clusterctl::store
