// What is wanted of a node while jobs wait for it. Each of them set its wish when it was accepted
// and remembers what stood there before: a pile. A job that ends without its aim takes its wish
// back; when a later one lies above, only what that one remembers changes. Belongs under the
// controller's mutex.
#pragma once

#include <map>
#include <string>

#include "controller/change.h"
#include "plan/plan.h"

namespace clusterctl::controller {

// What a job wants of a node, into its spec.
void set_wish(fleet::NodeSpec& spec, const plan::SpecChange& wish);

// `planned`: the changes of `job`, planned anew when its turn came. What it only found when it was
// accepted, and never asked for, is as it was then, whatever later jobs want meanwhile.
void keep_found(const job::Job& job, std::map<std::string, plan::SpecChange>& planned);

// Adds to `change`, which may hold newer records of node and jobs than `now`. Nothing if `job` had
// no wish for the node, or somebody else has changed it since.
void take_back_wish(const State& now, const job::Job& job, const std::string& node_id,
                    Change& change);

}  // namespace clusterctl::controller
