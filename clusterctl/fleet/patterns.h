// What a name, an address or an ssh setting may look like. Checked at every entry, because names
// and texts reported by machines reach Ansible and ssh: nothing that passes here can be an option,
// a template or a second line. Pure, any thread.
//
// Each check answers with an Error (kInvalid, reason "bad_…") that shows the value, what is allowed
// and, where it can, a fix.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace clusterctl::fleet {

inline constexpr size_t kMaxNodeVarsBytes = 256 << 10;
inline constexpr size_t kMaxRequestVarsBytes =
    384 << 10;  // a job record has to fit one value of the store
inline constexpr int kMaxVarsDepth = 16;
inline constexpr size_t kMaxListItems = 64;

bool is_name(std::string_view text);       // ^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$
bool is_word(std::string_view text);       // the same with `_`: groups, capabilities, services
bool is_ip(std::string_view text);         // IPv4 or IPv6 without zone
bool is_host_name(std::string_view text);  // RFC 1123, not a malformed IPv4 address
// 127.0.0.0/8, ::1 and the names that always mean this machine; others are not looked up.
bool is_loopback(std::string_view addr);

// One spelling per address, for comparing: IPv6 shortened, names in lower case.
std::string canonical_addr(std::string_view addr);
bool same_addr(std::string_view a, std::string_view b);

Status check_name(std::string_view name);
Status check_word(std::string_view word, std::string_view what);
Status check_addr(std::string_view addr, std::string_view what = "addr");
Status check_label(std::string_view key, std::string_view value);
Status check_version(std::string_view service, const Json& value);
Status check_ssh_user(std::string_view user);
Status check_ssh_port(int64_t port);
Status check_ssh_jump(std::string_view jump);
Status check_ssh_extra_args(const std::vector<std::string>& args);
// "type base64", a comment behind it is dropped; the result is what to store.
Result<std::string> check_host_key(std::string_view key);

// Variables: an object whose names are identifiers, with bounded size and depth and valid UTF-8.
// Which names are reserved is the business of the ansible room.
Status check_vars(const Json& vars, std::string_view what, size_t max_bytes);

// A text of others inside one of our lines: one line, at most 60 bytes, in quotes.
std::string shown(std::string_view text);

}  // namespace clusterctl::fleet
