// Revisions: every change of what is wanted (specs of nodes, globals) has a number, and is kept
// with what stood there before, so that an earlier state can be wanted again. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/snapshot.h"

namespace clusterctl::controller {

struct Change;

// So many are kept, and no more than so many records of nodes in them; the newest one always is.
inline constexpr size_t kKeptRevisions = 200;
inline constexpr size_t kKeptRevisionNodes = 20000;

// What a list shows of it. The records are in the store only.
struct Revision {
  uint64_t number = 0;
  Time time{};
  std::string by;    // who asked: "uid:0", "token"; empty: the controller itself
  std::string what;  // one line
  std::vector<std::string> added, changed, removed;  // names of nodes, sorted
  std::vector<std::string> globals;                  // names of variables, sorted
  size_t nodes() const { return added.size() + changed.size() + removed.size(); }
};
Json to_json(const Revision& revision);
Result<Revision> revision_from_json(const Json& record);

// What stood there before a revision, one record of the store for each.
struct Before {
  std::string name;
  Json spec;  // null: there was no such node
};
struct Undone {
  Revision revision;
  std::map<std::string, Before> nodes;  // by id
  std::optional<Json> globals;
};

// The revision that a change makes; nullopt when it changes nothing that is wanted. A host key that
// was learnt is not a wish.
std::optional<Undone> revision_of(const fleet::Snapshot& now, const Change& change);

// Store keys: revisions/<20 digits>, and below it /<node id> and /globals.
inline constexpr std::string_view kRevisionPrefix = "revisions/";
std::string revision_key(uint64_t number);

}  // namespace clusterctl::controller
