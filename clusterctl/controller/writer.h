// The only writer of the store. Turns a Change into a batch, commits it, then publishes the new
// State and its events. Belongs under the controller's mutex; state() alone may be called from any
// thread.
//
// A change beyond the limits of one batch is written as chunks below `commit/` first; a last record
// makes it valid (the commit point). Then it is rolled forward chunk by chunk; a daemon that dies
// in between rolls it forward at its next start.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/clock.h"
#include "controller/change.h"
#include "controller/event_log.h"
#include "store/store.h"

namespace clusterctl::controller {

class Writer {
 public:
  // `own_host` stands in every snapshot and is not stored.
  Writer(store::Store& store, const Clock& clock, EventLog& events, fleet::OwnHost own_host = {})
      : store_(store), clock_(clock), events_(events), own_host_(std::move(own_host)) {}

  // Rolls an unfinished large change forward, then reads everything. Damage is an Error.
  Status load();
  Status commit(Change change);
  std::shared_ptr<const State> state() const EXCLUDES(mutex_);
  // Records as stored, for what is not kept in memory (revisions).
  Result<std::vector<store::Record>> load(std::string_view prefix);

  const KeyTable& keys() const { return keys_; }

  // Why the store takes nothing at present (a full disk); nullopt: it did the last time.
  std::optional<Error> trouble() const EXCLUDES(mutex_);
  // While there is trouble: whether the store takes something again.
  void probe();

 private:
  Status roll_forward();
  Status store(Change& change);
  Status finish_large();
  void remember_trouble(const Status& done) EXCLUDES(mutex_);
  Status load_records(State& state, std::vector<Event>& events);
  using Put = std::function<void(std::string key, const Json& value)>;
  using Remove = std::function<void(const std::string& key)>;
  std::vector<store::Operation> operations(Change& change);
  void revise(Change& change, const Put& put, const Remove& remove);
  std::vector<std::string> keys_below(const std::string& prefix) const;
  Status write(const std::vector<store::Operation>& operations);
  Status write_large(const std::vector<store::Operation>& operations);
  Status write_chunks(const std::vector<store::Operation>& operations, bool expect);
  void remember(const std::vector<store::Operation>& operations, uint64_t revision);
  void publish(State state) EXCLUDES(mutex_);

  store::Store& store_;
  const Clock& clock_;
  EventLog& events_;
  const fleet::OwnHost own_host_;
  std::map<std::string, uint64_t> revisions_;  // of every record, as last seen or written
  uint64_t last_seq_ = 0, oldest_seq_ = 1;
  KeyTable keys_;
  // Of a large change beyond its commit point: what the store has yet to take, before anything
  // else.
  std::vector<store::Operation> unfinished_;
  mutable Mutex mutex_;
  std::shared_ptr<const State> state_ GUARDED_BY(mutex_) = std::make_shared<State>();
  std::optional<Error> trouble_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::controller
