// Machines that had joined and whose record is gone: what is left to know them by when they ask to
// leave, so that this can be told to nobody else. Belongs under the controller's mutex.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"

namespace clusterctl::controller {

inline constexpr std::string_view kDepartedPrefix = "departed/";
inline constexpr size_t kMaxDeparted = 10'000;  // beyond: the one that left first goes

struct Departed {
  std::string leave_digest;  // of the secret by which it may leave; stored, never shown
  Time since{};
};
using DepartedMachines = std::map<std::string, Departed>;  // by the id of the removed node
using DepartedChanges = std::map<std::string, std::optional<Departed>>;  // nullopt: it goes

Json to_record(const Departed& departed);
Departed departed_from(const Json& record);

// Adds one, and takes out what is too many.
void remember_departed(const DepartedMachines& known, const std::string& id, Departed departed,
                       DepartedChanges& out);
void apply(const DepartedChanges& changes, DepartedMachines& known);

}  // namespace clusterctl::controller
