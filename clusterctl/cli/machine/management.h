// The way by which the controller comes to this machine: a user, its right to become root without a
// password, and the controller's key in its authorized_keys. Prepared as a list of steps that each
// can be undone, so that a refused join leaves nothing behind. One thread.
#pragma once

#include <functional>
#include <optional>
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
};

// What is missing, in order, and how it was before: enough to undo it in another process as well
// (machine/joining.h).
struct Preparation {
  ManagementWay way;
  std::vector<MachineStep> steps;  // empty: everything is there
  bool makes_user = false, writes_sudo = false, adds_key = false;
  bool had_folder = false, had_keys = false;  // ~/.ssh, ~/.ssh/authorized_keys
  std::optional<std::string> sudo_before;     // text of the sudo file
};

// An Error: it cannot be made (no sudo, a home that is none).
Result<Preparation> prepare_management(const ManagementWay& way);
// Takes all, up to the first that fails; nothing is undone.
Status take_steps(const Preparation& preparation);
// Undoes what was taken, all of it or a part; the first failure, after everything was tried.
Status undo_steps(const Preparation& preparation);

// The reverse, for a machine that is no member any more: the key, the sudo file, and the user if
// `made_user`. What is not there is no Error. Answers what was removed, one line each.
Result<std::vector<std::string>> remove_management(const ManagementWay& way, bool made_user);

// Root, or an Error that says so.
Status check_root_user();

}  // namespace clusterctl::cli
