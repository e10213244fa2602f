// What a machine needs to be a controller: configuration, SSH key, state directory, systemd unit.
// What is there is left as it is. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::cli {

// Where the daemon is or will be, as its configuration says.
struct ControllerPlace {
  fs::path config, state_dir, socket, key;
  std::string listen;  // "0.0.0.0:9007"; empty: no TCP
  bool tls = false;    // of that listener
  // Of a configuration that is to be written; empty: there is one. The draft is for the check: a
  // key that is still to be made is not in it.
  std::string text, draft;
};

struct ControllerWish {
  fs::path config, state_dir;      // state_dir empty: the configuration's, or the default
  fs::path socket;                 // for a new configuration; empty: the default
  std::string listen;              // ADDRESS:PORT; empty: the configuration's, or the default
  std::string cluster_name;        // for a new state directory
  std::vector<std::string> names;  // by which clients call it, for a new configuration
};

inline constexpr const char* kDefaultConfig = "/etc/clusterctl/clusterctl.yml";

// Only looks. An Error when the wish cannot be, or (kConflict) when an existing configuration says
// something else.
Result<ControllerPlace> plan_controller(const ControllerWish& wish);
// Whether a daemon could run with it: its own check of the configuration, and of a new one whether
// its address can be listened on. Writes nothing that stays.
Status check_controller(const ControllerPlace& place);
// Writes what is missing and says what, one line each. `policy`: what a cluster begins with that
// the daemon makes there; an existing cluster is not changed by it. Empty: nothing is said.
Status write_controller(const ControllerPlace& place, const std::string& policy,
                        std::vector<std::string>& done);
// A cluster has its state there.
bool has_state(const ControllerPlace& place);
// Only this machine reaches the listener.
bool is_loopback_listen(const std::string& listen);

// systemd runs this machine.
bool has_systemd();
// Unit and group, unless they are there; then enables and starts it.
Status start_by_systemd(const ControllerPlace& place, std::vector<std::string>& done);
// By which a person would start it without systemd.
std::string start_command(const ControllerPlace& place);

}  // namespace clusterctl::cli
