// The body of POST /v1/plans: its form, and a document of it with secret values put aside. Internal
// to this room; one call each, one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "controller/change.h"
#include "controller/secrets.h"
#include "controller/variable_types.h"
#include "plan/wanted.h"

namespace clusterctl::controller {

struct PlanRequest {
  Json document, changes, job;  // null: not given
  std::optional<uint64_t> revision;
  bool prune = false, work = true, dry_run = false;
  Json options = Json::object();
};
// Exactly one of the four sources, and only what belongs to it.
Result<PlanRequest> read_plan_request(const Json& body);

class WantedReader {
 public:
  WantedReader(const State& now, const SecretNames& names, const VariableTypes& types, Ids& ids);

  Result<plan::Wanted> read(const PlanRequest& request);
  // Ids for nodes that are not there.
  void give_ids(const plan::Wanted& wanted);

  const std::map<std::string, std::string>& new_ids() const { return new_ids_; }
  std::map<std::string, Json> take_values() { return std::move(values_); }

 private:
  Status read_node(const Json& item, bool changes, plan::Wanted& out);
  Status read_globals(const Json& source, bool changes, plan::Wanted& out);
  Result<Json> hide(const Json& vars, const Json& current, const std::string& scope,
                    std::set<std::string>& renewed);
  std::string id_of(const std::string& name);
  // The stored spelling of a node's name, or the normal one of a node that is not there.
  Result<std::string> spelled(const std::string& given) const;

  const State& now_;
  const SecretNames& names_;
  const VariableTypes& types_;
  Ids& ids_;
  std::map<std::string, const fleet::Node*> by_name_;
  std::multimap<std::string, std::string> by_label_;  // names by their first label
  std::map<std::string, std::string> new_ids_;
  std::map<std::string, Json> values_;
};

// References in `vars` to what `values` has, replaced by it; others stay.
Result<Json> resolve_known(const Json& vars, const std::map<std::string, Json>& values);

}  // namespace clusterctl::controller
