// The node record: what the operator wants (spec), what was seen (status). Plain values without
// behaviour; copying is cheap enough for thousands. JSON in node_json.h. No I/O, no threads, no
// clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace clusterctl::fleet {

enum class Lifecycle {
  kUnallocated,
  kProvisioning,
  kAllocated,
  kMaintenance,
  kCancelled,
  kDecommissioned
};
enum class Acceptance { kPending, kAccepted, kRejected };
enum class Allocation { kInService, kSpare, kRetired };
enum class Availability { kActive, kPause, kDrain };
enum class Presence { kUnknown, kDiscovered, kDisappeared };
enum class Role { kManager, kWorker };

struct Ssh {
  std::string user;  // empty: the daemon's default
  int port = 22;
  std::string host_key;                 // "ssh-ed25519 AAAA…", pinned; empty: not known yet
  std::string jump;                     // "user@host:port" or empty
  std::vector<std::string> extra_args;  // passed to ssh unchanged; administrators only
  bool operator==(const Ssh&) const = default;
};

struct NodeSpec {
  std::string addr;  // IP address or host name
  Ssh ssh;
  Acceptance acceptance = Acceptance::kAccepted;
  Allocation allocation = Allocation::kInService;
  std::string host_group;                 // empty: not decided yet
  std::vector<std::string> capabilities;  // sorted; empty: the group's defaults
  Availability availability = Availability::kActive;
  std::map<std::string, std::string> labels;
  Json vars = Json::object();  // Ansible host variables; secrets as {"secret": "<name>"}
  std::map<std::string, std::string> versions;  // service -> version
  bool operator==(const NodeSpec&) const = default;
};

// What was last verified. Placement and quorum read this, never spec.
struct Applied {
  std::string host_group;
  std::vector<std::string> capabilities;
  Availability availability = Availability::kActive;
  std::map<std::string, std::string> versions;
  std::vector<std::string> services;  // in provisioning order
  std::string vars_fingerprint;       // of what the operator set and the catalog version; nothing
                                      // derived from other nodes
  // What tells the difference later (plan/drift.h); stored, never shown.
  std::map<std::string, std::string> vars;     // variable -> digest of its value
  std::map<std::string, std::string> catalog;  // service -> digest of its entry
  bool operator==(const Applied&) const = default;
};

// A member of a quorum service as one of its members sees it.
struct Member {
  std::string id;
  std::string name;
  std::string addr;
  std::string role;  // "manager", "worker", "member", "learner"
  bool reachable = false;
  bool leader = false;
  bool operator==(const Member&) const = default;
};

// The verify fact of one service on one node (docs/run-contract.md section 3) and when it was
// taken.
struct ServiceStatus {
  std::string version;
  bool healthy = false;
  std::string message;  // one line, what is wrong
  std::string role;
  std::string member_id;  // the recorded id by which the member is removed later
  std::vector<Member> members;
  std::string endpoint;
  Time observed{};
  bool operator==(const ServiceStatus&) const = default;
};

struct Hardware {
  std::string vendor, model, serial, uuid, machine_id, series, os, os_version, arch, kernel,
      host_name;
  std::string chassis, slot;      // serial of the enclosure and the place in it, where readable
  std::vector<std::string> macs;  // of its network cards: lower case, sorted
  int64_t cpus = 0;
  int64_t memory_mb = 0;
  bool operator==(const Hardware&) const = default;
};

// By what the machine of a node is known again: as it was accepted, which may differ from what was
// seen last (fleet/identity.h). Placeholders stand here as they were reported.
struct Identity {
  std::string serial, uuid, host_key;
  std::vector<std::string> macs;
  bool operator==(const Identity&) const = default;
};

// Where a machine with this node's identity was reported besides its own address.
struct Elsewhere {
  std::string addr, name;
  Time since{};
  bool operator==(const Elsewhere&) const = default;
};

// What a machine said and asked for when it joined (fleet/join.h). Only a wish: nothing of it
// counts before an operator grants it.
struct Requested {
  std::string host_group;
  std::vector<std::string> capabilities;
  std::map<std::string, std::string> labels;
  std::string os;     // "debian 12", in its own words
  std::string token;  // id of the join token, 8 characters; tells in the list of tokens who made it
  std::string leave_digest;  // of the secret by which it may leave again; stored, never shown
  Time since{};
  bool operator==(const Requested&) const = default;
};

// type: Dirty, Failed, NeedsVerification, IdentityConflict, HardwareReplaced, Drifted, Interrupted,
// NotCleaned, Pending, MaintenanceOverdue, LeaveRequested.
struct Condition {
  std::string type;
  std::string reason;  // one line
  std::string job;     // the job it comes from, or empty
  Time since{};
  bool operator==(const Condition&) const = default;
};

// A stay out of service that somebody asked for: maintenance-enter, or a reboot while it lasts.
// Gone when the node is back in service.
struct Maintenance {
  std::string kind;    // the kind of job that began it: what ends it
  std::string reason;  // one line
  std::string owner;   // who asked, or for whom
  std::string job;     // the job that began it
  Time since{};
  std::optional<Time> until;                    // when it should be over; nothing happens then
  Availability before = Availability::kActive;  // what the way back gives to the scheduler
  bool operator==(const Maintenance&) const = default;
};

struct NodeStatus {
  Lifecycle lifecycle = Lifecycle::kUnallocated;
  std::optional<Lifecycle> previous;
  Presence presence = Presence::kUnknown;
  std::optional<Time> last_seen;
  std::optional<Applied> applied;
  std::map<std::string, ServiceStatus> services;
  std::optional<Hardware> hardware;
  std::optional<Identity> identity;
  std::optional<Elsewhere> elsewhere;
  std::optional<Requested> requested;      // of a machine that joined by itself
  std::vector<Condition> conditions;       // at most one of each type, sorted by type
  std::optional<Maintenance> maintenance;  // only in Lifecycle::kMaintenance and kCancelled
  // Runs that broke off here and may have left processes: ended before anything else happens there.
  std::vector<std::string> fence_runs;  // sorted, the newest last
  bool operator==(const NodeStatus&) const = default;
};

struct Node {
  std::string id;
  std::string name;
  uint64_t generation = 1;  // grows with spec
  uint64_t resource_version =
      1;  // grows with spec, lifecycle, conditions, applied, services; the ETag
  Time created{};
  NodeSpec spec;
  NodeStatus status;
  bool operator==(const Node&) const = default;
};

}  // namespace clusterctl::fleet
