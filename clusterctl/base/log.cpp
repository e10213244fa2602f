#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/mask.h"
#include "base/strings.h"

namespace clusterctl::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto l = std::make_shared<spdlog::logger>("clusterctl",
                                              std::make_shared<spdlog::sinks::stderr_sink_mt>());
    l->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    return l;
  }();
  return *instance;
}

spdlog::level::level_enum translate(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(translate(level));
}
void write(Level level, std::string_view text) {
  logger().log(translate(level), one_line(mask_tokens(text)));
}

}  // namespace clusterctl::log
