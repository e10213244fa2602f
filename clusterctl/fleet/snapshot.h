// The fleet at one moment, as planning and readers see it. Immutable once published; shared by
// pointer, read without locks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/node.h"

namespace clusterctl::fleet {

// Cluster-wide settings that are not Ansible variables.
struct Cluster {
  std::string id;  // random, made at first start: distinguishes clusters of the same name
  std::string name = "default";
  std::string accept_policy = "always";  // "always" or "manual"
  std::string max_unavailable = "1";     // workers: number or percentage
  std::string drift_policy = "ask";      // "never", "ask" or "auto": what Drifted leads to
  uint64_t version = 1;                  // grows with every change; the ETag
  bool operator==(const Cluster&) const = default;
};

// A node that was removed while it owed a cleanup; see tombstone.h.
struct Tombstone {
  std::string id, name, addr;  // of the removed record
  std::string uuid, machine_id;
  std::string reason;  // why it owes a cleanup
  Time since{};
};

// The machine the controller runs on, found out at its start; not stored.
struct OwnHost {
  std::set<std::string> addresses;  // canonical spelling, and host names
  std::string machine_id;
};

struct Snapshot {
  uint64_t revision = 0;
  std::map<std::string, Node> nodes;  // by id
  Json globals = Json::object();      // Ansible variables; secrets as {"secret": "<name>"}
  Cluster cluster;
  std::map<std::string, Tombstone> tombstones;  // by the id of the removed node
  OwnHost own_host;
  // Most nodes stopped answering at once: it is the controller that is cut off. What is known of
  // their presence is from before. Not stored.
  std::optional<Time> isolated_since;
  std::map<std::string, std::string> secret_digests;  // of their values, by name; never shown

  const Node* by_name(std::string_view name) const;
  // Id, unambiguous id prefix of at least 4 characters, or name in any spelling (fleet/names.h);
  // a name without domain finds the only node with that first label. kNotFound or kInvalid
  // ("ambiguous", listing the candidates).
  Result<const Node*> find(std::string_view id_or_name) const;
};

}  // namespace clusterctl::fleet
