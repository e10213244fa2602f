#include "ansible/ssh_args.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alnum(char c) {
  return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

template <typename Allowed>
bool consists_of(std::string_view text, Allowed allowed) {
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

bool valid_dns_name(std::string_view text) {
  return text.size() <= 253 && is_alnum(text.empty() ? '-' : text.front()) &&
         is_alnum(text.back()) &&
         consists_of(text, [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_'; });
}

bool valid_port_text(std::string_view text) {
  if (text.size() > 5 || !consists_of(text, [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  const int port = std::stoi(std::string(text));
  return port >= 1 && port <= 65535;
}

// "[user@]host[:port]", an IPv6 address in brackets.
struct Jump {
  std::string user, host, port;
};

bool parse_jump(std::string_view text, Jump& out) {
  const size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    out.user = text.substr(0, at);
    if (!valid_user(out.user)) return false;
    text.remove_prefix(at + 1);
  }
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    out.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    const size_t end = std::min(text.find(':'), text.size());
    out.host = text.substr(0, end);
    text.remove_prefix(end);
  }
  if (!text.empty()) {
    if (text.front() != ':' || !valid_port_text(text.substr(1))) return false;
    out.port = text.substr(1);
  }
  return valid_address(out.host);
}

// An ssh_config value in double quotes where blanks may stand in it; a percent sign would be a
// token there.
std::string config_path(std::string_view path) {
  std::string out;
  for (char c : path) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
    if (c == '%') out += '%';
  }
  return "\"" + out + "\"";
}

std::string percent_twice(std::string_view text) {
  std::string out;
  for (char c : text) out.append(c == '%' ? 2 : 1, c);
  return out;
}

// An explicit command rather than ProxyJump, because that would not pass our key on. The jump
// host's own key is learnt at first use in the daemon user's known_hosts, and a changed one is
// refused.
std::string jump_command(const Jump& jump, const std::string& private_key) {
  std::string out = "ssh -W [%h]:%p -o BatchMode=yes -o StrictHostKeyChecking=accept-new";
  if (!private_key.empty())
    out += " -o IdentitiesOnly=yes -i " + percent_twice(shell_word(private_key));
  if (!jump.port.empty()) out += " -p " + jump.port;
  if (!jump.user.empty()) out += " -l " + jump.user;
  return out + " -- " + percent_twice(shell_word(jump.host));
}

tl::unexpected<Error> refuse_connection(std::string_view who, std::string_view what,
                                        std::string_view value, std::string_view hint) {
  return fail(Code::kInvalid, "bad_connection",
              fmt::format("{}: {} \"{}\" cannot be used", one_line(who), what,
                          truncate_utf8(one_line(value), 80)),
              std::string(hint));
}

}  // namespace

bool valid_host_name(std::string_view text) {
  return text.size() <= 63 && !text.empty() && is_lower_alnum(text.front()) &&
         is_lower_alnum(text.back()) &&
         consists_of(text, [](char c) { return is_lower_alnum(c) || c == '.' || c == '-'; });
}

bool valid_address(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return valid_dns_name(text);
  std::string address(text.substr(0, text.find('%')));
  const std::string_view zone =
      address.size() < text.size() ? text.substr(address.size() + 1) : "x";
  in6_addr binary;
  return ::inet_pton(AF_INET6, address.c_str(), &binary) == 1 && zone.size() <= 15 &&
         consists_of(zone, [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_'; });
}

bool valid_user(std::string_view text) {
  return text.size() <= 64 &&
         (is_alnum(text.empty() ? '-' : text.front()) || text.front() == '_') &&
         consists_of(text, [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_'; });
}

bool valid_host_key(std::string_view text) {
  if (text.size() > 16384 || one_line(text) != text) return false;
  const auto fields = split(text, ' ', true);
  return fields.size() >= 2 && is_lower_alnum(fields[0].front()) &&
         consists_of(fields[0],
                     [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '@'; }) &&
         fields[1].size() >= 16 && consists_of(fields[1], [](char c) {
           return is_alnum(c) || c == '+' || c == '/' || c == '=';
         });
}

bool valid_word(std::string_view text) {
  return text.size() <= 128 && is_lower_alnum(text.empty() ? '-' : text.front()) &&
         consists_of(text,
                     [](char c) { return is_lower_alnum(c) || c == '.' || c == '-' || c == '_'; });
}

Status check_connection(std::string_view who, std::string_view addr, std::string_view user,
                        const fleet::Ssh& ssh) {
  if (!valid_address(addr))
    return refuse_connection(who, "the address", addr, "give an IP address or a host name");
  if (!user.empty() && !valid_user(user))
    return refuse_connection(who, "the ssh user", user, "letters, digits, . _ -");
  if (ssh.port < 1 || ssh.port > 65535)
    return refuse_connection(who, "the ssh port", std::to_string(ssh.port), "1 to 65535");
  if (!ssh.host_key.empty() && !valid_host_key(ssh.host_key)) {
    return refuse_connection(who, "the host key", ssh.host_key,
                             "one line as in known_hosts without the host: ssh-ed25519 AAAA…");
  }
  Jump jump;
  if (!ssh.jump.empty() && !parse_jump(ssh.jump, jump))
    return refuse_connection(who, "the jump host", ssh.jump, "user@host:port");
  for (const std::string& arg : ssh.extra_args) {
    if (arg.empty() || one_line(arg) != arg || !valid_utf8(arg)) {
      return refuse_connection(who, "the ssh argument", arg, "no control characters, not empty");
    }
  }
  return {};
}

std::string common_args(const Connection& connection) {
  const fleet::Ssh& ssh = *connection.ssh;
  const std::string strict = ssh.host_key.empty() ? "accept-new" : "yes";
  std::vector<std::string> options = {
      "HostKeyAlias=" + connection.id,
      "UserKnownHostsFile=" + config_path(connection.known_hosts),
      "GlobalKnownHostsFile=/dev/null",
      "StrictHostKeyChecking=" + strict,
      "UpdateHostKeys=no",
      "CheckHostIP=no",
      "HashKnownHosts=no",
      "VerifyHostKeyDNS=no",
  };
  if (!connection.private_key.empty()) options.push_back("IdentitiesOnly=yes");
  Jump jump;
  if (!ssh.jump.empty() && parse_jump(ssh.jump, jump))
    options.push_back("ProxyCommand=" + jump_command(jump, connection.private_key));
  std::vector<std::string> words;
  for (const std::string& option : options) words.push_back("-o " + shell_word(option));
  for (const std::string& arg : ssh.extra_args) words.push_back(shell_word(arg));
  return join(words, " ");
}

std::string shell_word(std::string_view text) {
  const auto plain = [](char c) {
    return is_alnum(c) || std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (consists_of(text, plain)) return std::string(text);
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace clusterctl::ansible
