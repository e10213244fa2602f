// What this machine knows of itself, read from its own files: the same evidence that a run reads of
// a node (playbooks/plugins/modules/clusterctl_node.py). `root`: the folder that stands for "/", so
// that an image, or a test, can be looked at. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::cli {

struct MachineFacts {
  std::string name;          // its host name, lower case
  std::string serial, uuid;  // DMI, empty where there is none
  std::vector<std::string> macs;
  std::vector<std::string> host_keys;  // public keys of its SSH server
  std::string os;                      // "debian 12"
};

// An Error when the machine has no SSH server: it could not be reached.
Result<MachineFacts> read_machine_facts(const fs::path& root);

// The address of this machine from which it reaches `host` ("10.0.0.1", "[::1]", a name). Nothing
// is sent.
Result<std::string> address_towards(const std::string& host, int port);

}  // namespace clusterctl::cli
