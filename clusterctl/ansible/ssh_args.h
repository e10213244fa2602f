// What ssh is told about a host: argument text for Ansible and lines of known_hosts. Everything
// that came from an operator or a machine is checked against a pattern here, so that no value can
// become an option or a command. Pure, any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fleet/node.h"

namespace clusterctl::ansible {

// "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"
bool valid_host_name(std::string_view text);
// An IPv4 or IPv6 address (optionally with zone), or a DNS name. Never begins with a dash.
bool valid_address(std::string_view text);
bool valid_user(std::string_view text);
// "ssh-ed25519 AAAA…", an optional comment behind it.
bool valid_host_key(std::string_view text);
// Lower-case letters, digits, dash, underscore, dot; begins with a letter or digit.
bool valid_word(std::string_view text);

struct Connection {
  std::string id;           // alias under which the host key is kept
  std::string private_key;  // path or empty
  std::string known_hosts;  // path
  const fleet::Ssh* ssh = nullptr;
};

// Every problem of the connection settings, for `who`.
Status check_connection(std::string_view who, std::string_view addr, std::string_view user,
                        const fleet::Ssh& ssh);
// The value of ansible_ssh_common_args; the settings passed check_connection.
std::string common_args(const Connection& connection);
// Text that a POSIX shell, and Python's shlex, read as this one word.
std::string shell_word(std::string_view text);

}  // namespace clusterctl::ansible
