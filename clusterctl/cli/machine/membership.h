// What a machine remembers of having joined: /etc/clusterctl/joined.json, readable by root only,
// because it holds the secret by which the machine may leave. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::cli {

struct Membership {
  std::string server;   // URL of the controller
  std::string ca;       // fingerprint of its authority
  std::string cluster;  // id
  std::string cluster_name;
  std::string node, id;    // name and id of the node it is
  std::string secret;      // by which it may leave
  std::string user;        // by which the controller comes
  std::string public_key;  // of the controller
  bool made_user = false;  // the join made that user: leaving removes it
  std::string attempt;     // of machine/joining.h: that one came to its end
};

// nullopt: it has not joined. A damaged file is an Error.
Result<std::optional<Membership>> read_membership(const fs::path& root);
Status write_membership(const fs::path& root, const Membership& membership);
Status forget_membership(const fs::path& root);

}  // namespace clusterctl::cli
