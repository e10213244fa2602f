// Is the configured SSH key one that Ansible can use without asking anybody? For the daemon's
// start. Any thread.
#pragma once

#include "base/error.h"
#include "base/files.h"

namespace clusterctl::ansible {

// An Error that says what is wrong: not there, not readable, public instead of private, no key at
// all, readable by others, with passphrase.
Status check_private_key(const fs::path& path);
// "ssh-ed25519 AAAA…" that belongs to it, without a comment; asks ssh-keygen.
Result<std::string> public_key_of(const fs::path& path);

}  // namespace clusterctl::ansible
