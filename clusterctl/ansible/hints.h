// Known causes of failures: which words in a message mean what, and what to do about it. The table
// is data (playbooks/hints.yml); this only matches. Immutable once read: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace clusterctl::ansible {

// What is known about one failure, line by line; texts of others, already bounded and on one line
// each.
struct Evidence {
  std::vector<std::string> message;  // the module's own message
  std::vector<std::string> output;   // standard error, else output
  std::optional<int64_t> rc;         // negative: a signal
  bool unreachable = false;
  bool whole_run = false;  // ansible-playbook itself broke off
};

// "" in `code` and `hint` when the cause is not a known one.
struct Explanation {
  std::string line;  // the one line of the evidence that says why
  std::string code;
  std::string hint;
};

class Hints {
 public:
  // Strict: an unknown key, a wrong type or an entry that fits everything is an Error with its
  // place.
  static Result<Hints> parse(std::string_view text, std::string_view file_name);
  static Result<Hints> read(const fs::path& file);
  // The table as it was when this program was built.
  static Result<Hints> built_in();

  // `node` and `service` are put into the hint.
  Explanation explain(const Evidence& evidence, std::string_view node,
                      std::string_view service) const;
  std::vector<std::string> codes() const;

 private:
  struct Entry {
    std::string code, hint;
    std::vector<std::vector<std::string>> text;  // pieces between the asterisks, lower case
    std::vector<int64_t> rc;
    std::optional<bool> unreachable, whole_run;
  };
  static Result<Entry> parse_entry(const Json& value, const std::string& where);
  static bool fits(const Entry& entry, const Evidence& evidence,
                   const std::vector<std::string>& lowered, size_t& line);

  std::vector<Entry> entries_;
};

// The line that says why, when no table is at hand: the module's own message, unless that says
// nothing ("non-zero return code"); then the last line of its output; then the return code.
std::string plain_line(const Evidence& evidence);

// Lines of a text of others: without control characters and empty lines, at most `max_lines` (the
// last ones) of at most 2000 bytes.
std::vector<std::string> evidence_lines(std::string_view text, size_t max_lines = 100);

// The evidence in the output of a run that broke off: from the last "ERROR!" on, else its end.
Evidence output_evidence(std::string_view tail, int code, int signal);

}  // namespace clusterctl::ansible
