// output.log of a run: never an error, never without bounds. When the disk is full or the limit is
// reached it is cut with a note and takes no more. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"

namespace clusterctl::run {

class OutputLog {
 public:
  OutputLog(const fs::path& path, size_t max_bytes);

  void write(std::string_view bytes);
  bool truncated() const { return truncated_; }
  // Gives disk space back because something more important has none. False when there is nothing
  // left to give.
  bool give_way();
  void sync();

 private:
  void cut(size_t keep, std::string_view why);
  bool append(std::string_view bytes);

  Fd fd_;
  size_t size_ = 0;
  size_t max_bytes_;
  bool truncated_ = false;
};

// The end of the output.log in a run directory, at most `bytes` of it, beginning with a whole line;
// "" when there is none. Any thread.
std::string output_tail(const fs::path& run_dir, size_t bytes = 32 << 10);

}  // namespace clusterctl::run
