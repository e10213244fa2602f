// What a fleet should be (docs/apply.md), and what separates it from what is: changed records, and
// the jobs that bring nodes there. Pure: snapshot, catalog and time are arguments. Any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace clusterctl::plan {

// How what is said of a node becomes its spec.
enum class Reading {
  kDocument,  // of an inventory: variables, labels and versions are exactly those given (labels and
              // versions only when given at all), other fields change when given
  kChanges,   // a merge patch
  kWhole      // the whole spec, of an earlier revision
};

struct WantedNode {
  std::string name;
  Json spec = Json::object();     // secrets as references
  std::set<std::string> secrets;  // variables whose secret value is new behind the same reference
};

// One document. Its form is checked by difference().
struct Wanted {
  Reading reading = Reading::kDocument;
  std::vector<WantedNode> nodes;    // each name once, in any order
  std::optional<Json> globals;      // all variables; absent: they stay
  std::set<std::string> secrets;    // global variables whose secret value is new
  std::vector<std::string> remove;  // names of nodes that shall be gone; kWhole: only with prune
  bool prune = false;               // kDocument: nodes that are not named shall be gone as well
  bool work = true;                 // false: only records change
  Json options = Json::object();    // of the jobs: see kStepOptions
};

// Fields of a job request that a plan passes on to those of its jobs that know them.
inline const std::vector<std::string> kStepOptions{
    "max_unavailable", "max_failures", "drain",           "allow_outage", "force",          "level",
    "keep_on_failure", "timeout",      "silence_timeout", "deadline",     "controller_host"};

// A field that differs: "addr", "ssh.port", "labels.rack", "vars.mtu". Values of secrets are
// references.
struct FieldChange {
  std::string field;
  Json from, to;              // null: not there
  bool secret_value = false;  // the same reference, another value behind it
};

struct NodeDifference {
  std::string id, name;
  enum class What { kAdd, kChange, kRemove } what = What::kChange;
  std::vector<FieldChange> fields;  // sorted
  bool record = false;              // the record changes in the commit that applies it
};

// One job of a plan, in the order in which they run.
struct Step {
  Request request;
  Plan plan;
  bool removes = false;  // nodes that end well are removed from the fleet
};

// What a job that has not ended does with a node.
struct Busy {
  std::string job, kind;
};

struct Difference {
  std::vector<NodeDifference> nodes;  // by name; without those that stay as they are
  std::vector<FieldChange> globals;   // by name
  std::vector<Step> steps;
  std::vector<std::string> missing;  // names of nodes that the document does not have and that stay
  size_t unchanged = 0;              // named, nothing to do
  // Names of nodes that differ and stay as they are for now: nothing may be done there. A warning
  // says why.
  std::vector<std::string> left_out;
  std::vector<Problem> warnings;
  std::set<std::string> affected;  // names of nodes whose record changes or that a step works on
  fleet::Snapshot after;           // the fleet with the changed records
  bool nothing() const { return nodes.empty() && globals.empty() && steps.empty(); }
};

struct Surroundings {
  const fleet::Snapshot& snapshot;
  const catalog::Catalog& catalog;
  std::map<std::string, Busy> busy;           // by node id
  std::map<std::string, std::string> new_id;  // by name, for every node that is not there yet
  Time now{};
};

// All problems of all nodes, or what differs.
Result<Difference> difference(const Surroundings& around, const Wanted& wanted);

Json to_json(const Difference& difference);
Json to_json(const FieldChange& change);

}  // namespace clusterctl::plan
