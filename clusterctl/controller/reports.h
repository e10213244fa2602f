// What monitors tell, waiting to be worked off: whoever gets the controller's mutex first works off
// what all others have brought, in one commit. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/annotations.h"
#include "fleet/recognize.h"

namespace clusterctl::controller {

// What became of one machine of a report.
struct Seen {
  std::string label;  // as reported
  std::string node;   // name of the node, or empty
  std::string id;     // its id, or empty
  fleet::Finding finding = fleet::Finding::kIgnored;
  std::string message;
};

struct Report {
  bool discovered = true;  // else they have disappeared
  std::vector<fleet::Sighting> machines;
  // Filled by whoever works it off, under the controller's mutex.
  std::vector<Seen> seen;
  Status done;
  bool over = false;
};

class Reports {
 public:
  void bring(Report* report) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    waiting_.push_back(report);
  }
  std::vector<Report*> take() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<Report*> out;
    out.swap(waiting_);
    return out;
  }

 private:
  Mutex mutex_;
  std::vector<Report*> waiting_ GUARDED_BY(mutex_);
};

}  // namespace clusterctl::controller
