#include "store/batch.h"

#include <fmt/format.h>

#include <set>

#include "base/strings.h"

namespace clusterctl::store {

Status check_batch(const std::vector<Operation>& batch) {
  const auto too_large = [](std::string message) {
    return fail(Code::kTooLarge, "batch", std::move(message), "split it into several commits");
  };
  if (batch.size() > kMaxOperations) {
    return too_large(fmt::format("a batch of {} operations, at most {} are allowed", batch.size(),
                                 kMaxOperations));
  }
  size_t bytes = 0;
  std::set<std::string_view> keys;
  for (const Operation& operation : batch) {
    const size_t value_bytes = operation.value ? operation.value->size() : 0;
    bytes += operation.key.size() + value_bytes;
    if (operation.key.empty()) return fail(Code::kInvalid, "batch", "a batch with an empty key");
    if (!keys.insert(operation.key).second) {
      return fail(Code::kInvalid, "batch",
                  fmt::format("a batch changes the key {} twice", one_line(operation.key)));
    }
    if (value_bytes > kMaxValueBytes) {
      return too_large(fmt::format("the value of {} has {} bytes, at most {} are allowed",
                                   one_line(operation.key), value_bytes, kMaxValueBytes));
    }
  }
  if (bytes > kMaxBatchBytes) {
    return too_large(
        fmt::format("a batch of {} bytes, at most {} are allowed", bytes, kMaxBatchBytes));
  }
  return {};
}

tl::unexpected<Error> stale(const Operation& operation, uint64_t found) {
  return fail(Code::kStale, "revision",
              fmt::format("{} is at revision {}, not {}", one_line(operation.key), found,
                          operation.expected.value_or(0)));
}

}  // namespace clusterctl::store
