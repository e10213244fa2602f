// Reads a growing file line by line, each complete line once. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace clusterctl::run {

class Follower {
 public:
  Follower(fs::path path, std::function<void(std::string_view)> on_line);

  // Hands over what has become complete since the last call. A line beyond the limit comes as an
  // empty one: something was there.
  void read();

 private:
  void take(std::string_view bytes);

  static constexpr size_t kMaxLine = 8 << 20;

  fs::path path_;
  std::function<void(std::string_view)> on_line_;
  Fd fd_;
  std::string buffer_ = std::string(64 << 10, '\0');
  std::string partial_;
  bool overlong_ = false;
};

}  // namespace clusterctl::run
