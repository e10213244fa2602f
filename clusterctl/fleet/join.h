// A machine that announces itself with a join token: what it says is read strictly, and compared
// with what is known. It may become a node, or be one again; it can never take over what belongs to
// another machine, replace a pinned host key, or give itself a role. What it asks for is kept apart
// (Requested). The rules are in docs/join.md. Pure, any thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fleet/recognize.h"
#include "fleet/snapshot.h"

namespace clusterctl::fleet {

inline constexpr std::string_view kManagementUser = "clusterctl";

struct Announcement {
  std::string name, addr;
  std::string user;  // for SSH: where the machine puts the controller's key
  int ssh_port = 22;
  Identity identity;                   // host_key: the one that would be pinned
  std::vector<std::string> host_keys;  // all it has
  Requested requested;                 // without token, secret and time
};

// Body of POST /v1/join; "token" and "dry_run" are not looked at. All problems at once.
Result<Announcement> parse_announcement(const Json& body);

// What became of it: a node, and how it was found.
struct Admission {
  Finding finding = Finding::kNew;  // kNew, kKnown or kMoved
  std::string node;                 // id
  std::string message;              // one line
};

// kConflict when the machine is, by its identity, somebody it must not be, or claims a name or an
// address of another one; then `fleet` is not to be used. `new_id` as in discovered().
Result<Admission> join_machine(Snapshot& fleet, const Announcement& machine,
                               const std::function<std::string()>& new_id, Time now,
                               std::set<std::string>& changed);

}  // namespace clusterctl::fleet
