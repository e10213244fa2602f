// How many playbook runs a machine bears side by side. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clusterctl::controller {

// What one ansible-playbook takes with its forks and SSH connections, roughly.
constexpr uint64_t kBytesPerRun = uint64_t{300} << 20;

// Twice the processors, because a run mostly waits for its nodes, and not more than fit into the
// memory that is free; at least 2, so that one long job never holds up everything else.
// `available`: bytes; nullopt: not known.
int default_parallel_runs(unsigned processors, std::optional<uint64_t> available);

// MemAvailable of /proc/meminfo, in bytes.
std::optional<uint64_t> available_memory(std::string_view meminfo);

}  // namespace clusterctl::controller
