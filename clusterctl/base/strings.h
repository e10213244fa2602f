// Small text functions without state. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clusterctl {

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Splits at every separator; empty pieces are kept unless `skip_empty`.
std::vector<std::string> split(std::string_view text, char separator, bool skip_empty = false);
std::string trim(std::string_view text);
std::string lower(std::string_view text);
bool contains(const std::vector<std::string>& list, std::string_view text);
// Control characters and line breaks, those of Unicode included, become spaces: text of others
// inside one line of ours.
std::string one_line(std::string_view text);
// The candidate with the smallest edit distance, or "" when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
bool valid_utf8(std::string_view text);
// Cuts to at most `max` bytes without breaking a UTF-8 character.
std::string truncate_utf8(std::string_view text, size_t max);

}  // namespace clusterctl
