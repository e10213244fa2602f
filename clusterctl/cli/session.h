// What a running command works with: terminal, daemon, time, and how the caller wants to see
// things. Lives for one command; one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/context_file.h"
#include "cli/terminal.h"
#include "client/curl_client.h"
#include "client/rest_client.h"
#include "client/sse_reader.h"

namespace clusterctl::cli {

enum class Format { kTable, kWide, kJson, kYaml, kName };
class Table;
using Query = std::vector<std::pair<std::string, std::string>>;

struct Session {
  Terminal& terminal;
  client::RestClient& rest;
  client::Timer& timer;
  const Tree& tree;
  std::string version;  // of this program
  Format format = Format::kTable;
  bool quiet = false;
  bool color = false;
  bool asked = false;          // a request was sent: what went wrong may be the daemon's answer
  size_t requested_nodes = 0;  // of a refused request, for "3 of 12 nodes refused"
  // For commands that choose for themselves whom they talk to (needs_server is false).
  std::function<std::unique_ptr<client::RestClient>(client::Settings)> connect = nullptr;
  bool compact = false;      // JSON documents on one line each, for those who read many
  Connection given{};        // as flags said it
  fs::path contexts_path{};  // file of the caller's contexts; empty: it has no home
  // A second way to the same daemon, for asking while `rest` follows a stream.
  std::function<std::unique_ptr<client::RestClient>()> another{};

  bool structured() const { return format == Format::kJson || format == Format::kYaml; }
  bool names_only() const { return quiet || format == Format::kName; }

  // The body of a 2xx answer; anything but an object is an Error, except for an empty body (null).
  Result<Json> get(const std::string& path, Query query = {});
  Result<Json> call(const std::string& method, const std::string& path, Json body,
                    std::map<std::string, std::string> headers = {});
  // A text that an answer must have.
  Result<std::string> needed(const Json& answer, std::string_view key) const;
  // GET of a list in pages: all of `key`, or the first `limit` of it; the rest of the answer is
  // that of the last page.
  Result<Json> get_some(const std::string& path, Query query, const std::string& key,
                        std::optional<int64_t> limit);
  // GET of a list in pages: all of `key`.
  Result<Json> get_all(const std::string& path, Query query, const std::string& key);

  void line(std::string_view text);  // on standard output
  void note(std::string_view text);  // on standard error; nothing when quiet
  // A hint what to do next: on standard output when a person reads it there, else nowhere.
  void next(std::string_view text);
  void data(const Json& value);                   // as JSON or YAML
  std::string document(const Json& value) const;  // the same as text
  // As wide as the terminal, or as it needs: without a terminal, and with -o wide.
  std::string rendered(const Table& table) const;
  void warnings(const Json& answer);  // those an answer carries, as notes
};

// "error: …" and "hint: …" on standard error; problems grouped by node, with a line that counts the
// nodes.
void print_error(Terminal& terminal, const Error& error, size_t requested_nodes, bool color);

}  // namespace clusterctl::cli
