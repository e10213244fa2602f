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
};

struct ControllerWish {
  fs::path config, state_dir;      // state_dir empty: the configuration's, or the default
  fs::path socket;                 // for a new configuration; empty: the default
  std::string listen;              // ADDRESS:PORT; empty: the configuration's, or the default
  std::string cluster_name;        // for a new state directory
  std::vector<std::string> names;  // by which clients call it, for a new configuration
};

inline constexpr const char* kDefaultConfig = "/etc/clusterctl/clusterctl.yml";

// Writes what is missing and says what, one line each. kConflict when an existing configuration
// says something else than the wish: nothing is changed then.
Result<ControllerPlace> prepare_controller(const ControllerWish& wish,
                                           std::vector<std::string>& done);

// systemd runs this machine.
bool has_systemd();
// Unit and group, unless they are there; then enables and starts it.
Status start_by_systemd(const ControllerPlace& place, std::vector<std::string>& done);
// By which a person would start it without systemd.
std::string start_command(const ControllerPlace& place);
// The daemon's own check of its configuration.
Status check_by_daemon(const ControllerPlace& place);

}  // namespace clusterctl::cli
