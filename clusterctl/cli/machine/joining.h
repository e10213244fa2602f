// What is about to be changed on this machine so that a controller comes in, written down before
// the first change: /etc/clusterctl/joining.json, mode 0600. A process that dies in between, even
// by kill -9, leaves it behind, and the next `cluster join`, `cluster leave` or `cluster init`
// undoes by it what was begun. One thread; MachineLock keeps others away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cli/machine/management.h"

namespace clusterctl::cli {

struct Joining {
  std::string attempt;  // stands in joined.json as well once it came to its end
  std::string server;   // URL of the controller
  Preparation preparation;
};

// Held while a machine is made a node, or is made none: two at once would undo each other's work.
// Leaves no file behind.
class MachineLock {
 public:
  // kConflict when somebody else holds it.
  static Result<MachineLock> acquire(const fs::path& root);

 private:
  explicit MachineLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Writes it down, then takes the steps; when one fails, they are undone. The attempt's name.
Result<std::string> begin_joining(const std::string& server, const Preparation& preparation);
// It came to its end: what was done stays.
Status finish_joining(const fs::path& root);
// Undoes the steps and forgets the attempt. After a failure it stays written down, and the Error
// says what takes it away.
Status abandon_joining(const Preparation& preparation);

// Of a process that is gone; nullopt: nothing was left behind. One that came to its end, as
// joined.json tells, is only forgotten.
Result<std::optional<Joining>> find_leftover(const fs::path& root);
// Undoes what such a process left; what was undone, one line, or empty.
Result<std::string> undo_leftover(const fs::path& root);

}  // namespace clusterctl::cli
