// Public SSH keys as text ("ssh-ed25519 AAAA… comment"). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clusterctl {

// "ssh-ed25519 AAAA…" without comment; nullopt when it is no public key: unknown type, a body that
// is not base64 or does not begin with that type.
std::optional<std::string> plain_ssh_key(std::string_view line);
// "SHA256:…" as ssh-keygen -l shows it; "" when it is no public key.
std::string ssh_fingerprint(std::string_view key);

}  // namespace clusterctl
