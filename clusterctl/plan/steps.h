// The jobs that bring the nodes of a document where they shall be. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "fleet/problems.h"
#include "plan/wanted.h"

namespace clusterctl::plan {

// A node that the document speaks of.
struct Target {
  std::string id;
  fleet::NodeSpec spec;     // as wanted, with what only a job may change
  bool new_secret = false;  // a secret value of its own is new
  bool leaves = false;      // it shall be gone; it is commissioned
};

// Fills `steps` and warnings of `out`, whose `after` holds the changed records.
void add_steps(const Surroundings& around, const Wanted& wanted, const std::vector<Target>& targets,
               Difference& out, fleet::Problems& problems);

}  // namespace clusterctl::plan
