// Operations on records, short enough to read in a test.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "store/store.h"

namespace clusterctl::store {

inline Operation put(std::string key, std::string value,
                     std::optional<uint64_t> expected = std::nullopt) {
  return {std::move(key), std::move(value), expected};
}
inline Operation erase(std::string key, std::optional<uint64_t> expected = std::nullopt) {
  return {std::move(key), std::nullopt, expected};
}

}  // namespace clusterctl::store
