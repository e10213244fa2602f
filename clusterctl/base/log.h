// The daemon's own log: one line an event on standard error, for the journal. Any thread. Text of
// others is put on one line, and tokens in it are masked.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"

namespace clusterctl::log {

enum class Level { kDebug, kInfo, kWarn, kError };

void set_level(Level level);
void write(Level level, std::string_view text);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace clusterctl::log
