// The words of the domain's enums, exactly as they stand on the wire and on disk: one table per
// enum, read in both directions. Pure, any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/node.h"

namespace clusterctl::fleet {

template <typename E>
struct Words;

template <>
struct Words<Lifecycle> {
  static constexpr std::array<std::pair<Lifecycle, std::string_view>, 6> kTable{{
      {Lifecycle::kUnallocated, "Unallocated"},
      {Lifecycle::kProvisioning, "Provisioning"},
      {Lifecycle::kAllocated, "Allocated"},
      {Lifecycle::kMaintenance, "Maintenance"},
      {Lifecycle::kCancelled, "Cancelled"},
      {Lifecycle::kDecommissioned, "Decommissioned"},
  }};
};

template <>
struct Words<Acceptance> {
  static constexpr std::array<std::pair<Acceptance, std::string_view>, 3> kTable{{
      {Acceptance::kPending, "pending"},
      {Acceptance::kAccepted, "accepted"},
      {Acceptance::kRejected, "rejected"},
  }};
};

template <>
struct Words<Allocation> {
  static constexpr std::array<std::pair<Allocation, std::string_view>, 3> kTable{{
      {Allocation::kInService, "in-service"},
      {Allocation::kSpare, "spare"},
      {Allocation::kRetired, "retired"},
  }};
};

template <>
struct Words<Availability> {
  static constexpr std::array<std::pair<Availability, std::string_view>, 3> kTable{{
      {Availability::kActive, "active"},
      {Availability::kPause, "pause"},
      {Availability::kDrain, "drain"},
  }};
};

template <>
struct Words<Presence> {
  static constexpr std::array<std::pair<Presence, std::string_view>, 3> kTable{{
      {Presence::kUnknown, "Unknown"},
      {Presence::kDiscovered, "Discovered"},
      {Presence::kDisappeared, "Disappeared"},
  }};
};

template <>
struct Words<Role> {
  static constexpr std::array<std::pair<Role, std::string_view>, 2> kTable{{
      {Role::kManager, "manager"},
      {Role::kWorker, "worker"},
  }};
};

template <typename E>
constexpr std::string_view word(E value) {
  for (const auto& [e, text] : Words<E>::kTable) {
    if (e == value) return text;
  }
  return "?";
}

// Exact spelling only.
template <typename E>
constexpr std::optional<E> from_word(std::string_view text) {
  for (const auto& [e, known] : Words<E>::kTable) {
    if (known == text) return e;
  }
  return std::nullopt;
}

template <typename E>
std::vector<std::string> all_words() {
  std::vector<std::string> out;
  out.reserve(Words<E>::kTable.size());
  for (const auto& row : Words<E>::kTable) out.emplace_back(row.second);
  return out;
}

// Busy or in service: its membership counts, its name is fixed, it cannot be deleted.
constexpr bool is_commissioned(Lifecycle l) {
  return l != Lifecycle::kUnallocated && l != Lifecycle::kDecommissioned;
}
inline bool is_commissioned(const Node& node) {
  return is_commissioned(node.status.lifecycle);
}

}  // namespace clusterctl::fleet
