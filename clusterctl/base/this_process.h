// What the kernel counts of this process. Any thread; a few files below /proc are read.
#pragma once

#include <cstdint>
#include <optional>

namespace clusterctl {

struct ProcessNumbers {
  double cpu_seconds = 0;    // user and system
  double started = 0;        // Unix time in seconds
  int64_t resident = 0;      // bytes
  int64_t virtual_size = 0;  // bytes
  int64_t threads = 0;
  int64_t open_descriptors = 0;
  int64_t max_descriptors = 0;
};

// nullopt: /proc cannot be read.
std::optional<ProcessNumbers> this_process();

}  // namespace clusterctl
