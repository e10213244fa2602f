// The way by which the controller comes to this machine: a user, its right to become root without a
// password, and the controller's key in its authorized_keys. Prepared as a list of steps that each
// can be undone, so that a refused join leaves nothing behind. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace clusterctl::cli {

struct ManagementWay {
  fs::path root = "/";     // the folder that stands for "/"
  std::string user;        // made when it is missing
  std::string public_key;  // "ssh-ed25519 AAAA…" of the controller
  std::string comment;     // behind the key: whose it is; one word
};

struct MachineStep {
  std::string what;  // "create user clusterctl"
  std::function<Status()> take;
  std::function<Status()> undo;
};

// What is missing, in order; empty: everything is there. An Error: it cannot be made (no sudo, a
// home that is none).
Result<std::vector<MachineStep>> management_steps(const ManagementWay& way);
// Takes all; after a failure those that were taken are undone.
Status take_steps(const std::vector<MachineStep>& steps);
void undo_steps(const std::vector<MachineStep>& steps);

// The reverse, for a machine that is no member any more: the key, the sudo file, and the user if
// `made_user`. What is not there is no Error. Answers what was removed, one line each.
Result<std::vector<std::string>> remove_management(const ManagementWay& way, bool made_user);

// Root, or an Error that says so.
Status check_root_user();

}  // namespace clusterctl::cli
