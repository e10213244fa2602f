// Is the configured SSH key one that Ansible can use without asking anybody? For the daemon's
// start. Any thread.
#pragma once

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::ansible {

// An Error that says what is wrong: not there, not readable, public instead of private, no key at
// all, readable by others, with passphrase.
Status check_private_key(const fs::path& path);

}  // namespace clusterctl::ansible
