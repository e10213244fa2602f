// Replaces secret values in a stream of bytes by ***, also when a value is spread over several
// reads. One thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace clusterctl::run {

class Redactor {
 public:
  // Values shorter than this stay: replacing "a" or "80" everywhere would destroy the text and
  // protect nothing.
  static constexpr size_t kMinLength = 4;

  explicit Redactor(const std::vector<std::string>& values);
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  bool empty() const { return patterns_.empty(); }
  // The part of the stream that can be written now. What may be the beginning of a secret is held
  // back until more is known.
  std::string feed(std::string_view bytes);
  // The rest, at the end of the stream.
  std::string finish();

  // A whole text.
  std::string replace(std::string_view text) const;
  // One line of events.jsonl: only its free texts, never its names, so that it stays what it was
  // for a reader. A line that is no JSON is replaced as text.
  std::string replace_in_event(std::string_view line) const;

 private:
  std::string scan(std::string_view text, bool at_end, size_t& used) const;
  void replace_strings(Json& value) const;

  std::vector<std::string> patterns_;                          // longest first
  std::array<std::vector<const std::string*>, 256> by_first_;  // the same by their first byte
  std::string held_;
};

}  // namespace clusterctl::run
