// What an Idempotency-Key stands for: a request that made something and, sent again, makes it no
// second time. A key is remembered in the commit that makes the thing, so neither a broken
// connection nor a restart comes between. Keys are kept as digests; the request as well. Refused
// requests made nothing and are not remembered. Belongs under the controller's mutex.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace clusterctl::controller {

// A caller's key, and what became of it.
struct Once {
  std::string key;        // empty: none was given
  bool repeated = false;  // told: it was done before
};

struct KeyRecord {
  std::string request;  // digest
  std::string made;     // id of what it made
  Time used{};
};
Json to_record(const KeyRecord& record);
KeyRecord key_from_record(const Json& record);

// The same route and the same body, however its keys are ordered, give the same text.
std::string request_digest(std::string_view route, const Json& body);

// The object that a key had made is there no more.
tl::unexpected<Error> made_is_gone(std::string_view made);

// Changes of the table, by digest of the key; nullopt: it goes.
using KeyChanges = std::map<std::string, std::optional<KeyRecord>>;

class KeyTable {
 public:
  static constexpr std::chrono::hours kKept{24};
  static constexpr size_t kMax = 10'000;  // beyond: the oldest goes

  // Id of what this key has made; nullopt: nothing, or it is no longer known. kConflict
  // "idempotency_key" when it was given for another request.
  Result<std::optional<std::string>> find(const std::string& key, const std::string& request,
                                          Time now) const;
  // Adds the key, unless empty, and takes out some that are too old or too many.
  void remember(const std::string& key, KeyRecord record, KeyChanges& out) const;
  void apply(const KeyChanges& changes);
  size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, KeyRecord> keys_;
  std::set<std::pair<Time, std::string>> by_age_;
};

}  // namespace clusterctl::controller
