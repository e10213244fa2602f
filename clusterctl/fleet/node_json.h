// The node record as JSON: on the wire (docs/rest.md), in the store (the same with "v"), and what
// clients may send. Everything that comes from outside is checked here, all problems at once. Pure,
// any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "fleet/node.h"
#include "fleet/words.h"

namespace clusterctl::fleet {

// `role`: "manager", "worker" or "" when the node has no group; the catalog knows it (see
// role_word).
Json to_json(const Node& node, std::string_view role);
Json to_json(const NodeSpec& spec);
Json to_json(const NodeStatus& status);
Json to_json(const Member& member);
Json to_json(const ServiceStatus& status);
Json to_json(const Hardware& hardware);
Json to_json(const Identity& identity);
Json to_json(const Elsewhere& elsewhere);
Json to_json(const Requested& requested);
Json to_json(const Applied& applied);
Json to_json(const Condition& condition);

// For the store. node_from_json reads back every field; kInternal "damaged" names what is wrong
// with a record.
inline constexpr int kNodeVersion = 1;
Json to_store(const Node& node);
Result<Node> node_from_json(const Json& record);

// A `spec` object from outside; unknown keys are refused with the nearest known one. Absent fields
// have their defaults. Capabilities come out sorted and without repetitions.
Result<NodeSpec> parse_spec(const Json& spec);

// Body of POST /v1/nodes: {"name", "spec"}.
struct NewNode {
  std::string name;
  NodeSpec spec;
  bool acceptance_given = false;  // else the cluster's accept_policy decides
};
Result<NewNode> parse_new_node(const Json& body);

// Body of PATCH /v1/nodes/{n}: a JSON merge patch {"spec": {…}}. A variable whose value is a secret
// reference is replaced whole.
struct SpecPatch {
  NodeSpec spec;                       // after the patch
  std::vector<std::string> changed;    // fields of spec whose value differs, sorted
  std::vector<std::string> needs_job;  // those of them that need work on this (commissioned) node
};
Result<SpecPatch> apply_spec_patch(const Node& node, const Json& body);

// kConflict "needs_job" with one problem per field and the commands to run, or success.
Status check_patch(const Node& node, const SpecPatch& patch);

}  // namespace clusterctl::fleet
