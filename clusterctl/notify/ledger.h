// How far each receiver has got, over restarts: a small file of the notifier's own beside the
// store. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/files.h"

namespace clusterctl::notify {

// By receiver's name: the number of the last fleet event that is settled (delivered, given up or
// not wanted).
using Cursors = std::map<std::string, uint64_t>;

class Ledger {
 public:
  virtual ~Ledger() = default;
  // Nothing there: empty. Damage is an Error.
  virtual Result<Cursors> load() = 0;
  // Durable when it returns.
  virtual Status save(const Cursors& cursors) = 0;
};

class FileLedger final : public Ledger {
 public:
  explicit FileLedger(fs::path file) : file_(std::move(file)) {}
  Result<Cursors> load() override;
  Status save(const Cursors& cursors) override;

 private:
  const fs::path file_;
};

}  // namespace clusterctl::notify
